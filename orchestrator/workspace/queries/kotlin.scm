; The wheel has no tags.
(class_declaration "class" name: (identifier) @name) @definition.class
(class_declaration "interface" name: (identifier) @name) @definition.interface
(object_declaration name: (identifier) @name) @definition.class
(function_declaration name: (identifier) @name) @definition.function
(source_file (property_declaration (variable_declaration (identifier) @name)) @definition.variable)
(class_body (property_declaration (variable_declaration (identifier) @name)) @definition.property)
(type_alias type: (identifier) @name) @definition.type
[(line_comment) (block_comment)] @above
(import (qualified_identifier) @source) @import
