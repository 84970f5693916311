; The wheel's tags, and:
(enum_declaration name: (_) @name) @definition.enum
(record_declaration name: (_) @name) @definition.class
(annotation_type_declaration name: (_) @name) @definition.interface
(constructor_declaration name: (_) @name) @definition.method
(compact_constructor_declaration name: (_) @name) @definition.method
(field_declaration declarator: (variable_declarator name: (_) @name)) @definition.field
[(line_comment) (block_comment)] @above
(import_declaration (scoped_identifier) @source (asterisk)? @imported) @import
