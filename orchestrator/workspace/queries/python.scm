; The wheel's tags, and: decorators belong to what they decorate; constants at the top only.
(decorated_definition definition: (class_definition name: (identifier) @name)) @definition.class
(decorated_definition definition: (function_definition name: (identifier) @name)) @definition.function
(module (type_alias_statement left: (type (identifier) @name)) @definition.type)
(comment) @above
(import_statement name: (dotted_name) @source) @import
(import_statement name: (aliased_import name: (dotted_name) @source)) @import
(import_from_statement module_name: (_) @source name: (dotted_name) @imported) @import
(import_from_statement module_name: (_) @source name: (aliased_import name: (dotted_name) @imported)) @import
(import_from_statement module_name: (_) @source (wildcard_import) @imported) @import
