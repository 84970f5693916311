; The wheel's tags, and: `export` and the one declaration of a statement belong to the definition.
(export_statement declaration: (class_declaration name: (_) @name)) @definition.class
(export_statement declaration: [
  (function_declaration name: (_) @name)
  (generator_function_declaration name: (_) @name)
]) @definition.function
(lexical_declaration . (variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)]) .) @definition.function
(export_statement declaration: (lexical_declaration . (variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)]) .)) @definition.function
(program (lexical_declaration . (variable_declarator name: (identifier) @name) .) @definition.constant)
(program (export_statement declaration: (lexical_declaration . (variable_declarator name: (identifier) @name) .)) @definition.constant)
(method_definition name: (_) @name) @definition.method
(comment) @above
(decorator) @above
(class_declaration name: (_) @name) @definition.class
(class name: (_) @name) @definition.class
(function_declaration name: (_) @name) @definition.function
(generator_function_declaration name: (_) @name) @definition.function
(function_expression name: (identifier) @name) @definition.function
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)]) @definition.function
(import_statement source: (string (string_fragment) @source)) @import
(import_statement (import_clause (identifier) @imported) source: (string (string_fragment) @source)) @import
(import_statement (import_clause (namespace_import) @imported) source: (string (string_fragment) @source)) @import
(import_statement (import_clause (named_imports (import_specifier name: (_) @imported))) source: (string (string_fragment) @source)) @import
(export_statement source: (string (string_fragment) @source)) @import
(export_statement (export_clause (export_specifier name: (_) @imported)) source: (string (string_fragment) @source)) @import
(call_expression function: (import) arguments: (arguments . (string (string_fragment) @source))) @import
(call_expression function: (identifier) @_call arguments: (arguments . (string (string_fragment) @source)) (#eq? @_call "require")) @import
