; The wheel has no tags.
(namespace_declaration name: (_) @name) @definition.module
(class_declaration name: (_) @name) @definition.class
(interface_declaration name: (_) @name) @definition.interface
(struct_declaration name: (_) @name) @definition.struct
(record_declaration name: (_) @name) @definition.class
(enum_declaration name: (_) @name) @definition.enum
(delegate_declaration name: (_) @name) @definition.type
(method_declaration name: (_) @name) @definition.method
(constructor_declaration name: (_) @name) @definition.method
(destructor_declaration name: (_) @name) @definition.method
(property_declaration name: (_) @name) @definition.property
(event_declaration name: (_) @name) @definition.property
(local_function_statement name: (_) @name) @definition.function
(field_declaration (variable_declaration (variable_declarator name: (_) @name))) @definition.field
(comment) @above
(using_directive [(qualified_name) (identifier)] @source .) @import
