; The wheel's tags find the declarator; a definition is all of it, its template head included.
(function_definition declarator: (function_declarator declarator: [(identifier) (field_identifier) (destructor_name) (operator_name)] @name)) @definition.function
(function_definition declarator: (_ (function_declarator declarator: [(identifier) (field_identifier)] @name))) @definition.function
(function_definition declarator: (function_declarator declarator: (qualified_identifier scope: (_) @scope name: (_) @name))) @definition.method
(function_definition declarator: (_ (function_declarator declarator: (qualified_identifier scope: (_) @scope name: (_) @name)))) @definition.method
(declaration declarator: (function_declarator declarator: (identifier) @name)) @definition.function
(field_declaration declarator: (function_declarator declarator: (field_identifier) @name)) @definition.method
(field_declaration declarator: (_ (function_declarator declarator: (field_identifier) @name))) @definition.method
(template_declaration (function_definition declarator: (function_declarator declarator: (identifier) @name))) @definition.function
(template_declaration (class_specifier name: (type_identifier) @name)) @definition.class
(template_declaration (struct_specifier name: (type_identifier) @name)) @definition.struct
(class_specifier name: (type_identifier) @name body: (_)) @definition.class
(struct_specifier name: (type_identifier) @name body: (_)) @definition.struct
(union_specifier name: (type_identifier) @name body: (_)) @definition.union
(enum_specifier name: (type_identifier) @name body: (_)) @definition.enum
(namespace_definition name: (_) @name) @definition.module
(alias_declaration name: (_) @name) @definition.type
(preproc_function_def name: (_) @name) @definition.macro
(comment) @above
(preproc_include path: [(system_lib_string) (string_literal)] @source) @import
