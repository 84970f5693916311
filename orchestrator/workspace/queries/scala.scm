; The wheel has no tags that its package names.
(class_definition name: (identifier) @name) @definition.class
(object_definition name: (identifier) @name) @definition.module
(trait_definition name: (identifier) @name) @definition.trait
(enum_definition name: (identifier) @name) @definition.enum
(function_definition name: (identifier) @name) @definition.function
(function_declaration name: (identifier) @name) @definition.function
(template_body (val_definition pattern: (identifier) @name) @definition.property)
(template_body (var_definition pattern: (identifier) @name) @definition.property)
(compilation_unit (val_definition pattern: (identifier) @name) @definition.constant)
(type_definition name: (type_identifier) @name) @definition.type
[(comment) (block_comment)] @above
(import_declaration) @source @import
