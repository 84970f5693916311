; The wheel's tags name what is inside of a definition, too; these are our own.
(class_declaration "class" name: (type_identifier) @name) @definition.class
(class_declaration "struct" name: (type_identifier) @name) @definition.struct
(class_declaration "enum" name: (type_identifier) @name) @definition.enum
(class_declaration "actor" name: (type_identifier) @name) @definition.class
(class_declaration "extension" name: (user_type) @name) @definition.impl
(protocol_declaration name: (type_identifier) @name) @definition.interface
(function_declaration name: (simple_identifier) @name) @definition.function
(protocol_function_declaration name: (simple_identifier) @name) @definition.function
(init_declaration "init" @name) @definition.method
(source_file (property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @definition.variable)
(class_body (property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @definition.property)
(typealias_declaration name: (type_identifier) @name) @definition.type
[(comment) (multiline_comment)] @above
(import_declaration (identifier) @source) @import
