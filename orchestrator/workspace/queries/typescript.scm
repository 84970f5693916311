; JavaScript's queries and the wheel's tags, and:
(enum_declaration name: (_) @name) @definition.enum
(type_alias_declaration name: (_) @name) @definition.type
(internal_module name: (_) @name) @definition.module
(public_field_definition name: (_) @name) @definition.field
(export_statement declaration: (abstract_class_declaration name: (_) @name)) @definition.class
(export_statement declaration: (interface_declaration name: (_) @name)) @definition.interface
(export_statement declaration: (enum_declaration name: (_) @name)) @definition.enum
(export_statement declaration: (type_alias_declaration name: (_) @name)) @definition.type
(export_statement declaration: (function_signature name: (_) @name)) @definition.function
(import_statement (import_require_clause source: (string (string_fragment) @source))) @import
