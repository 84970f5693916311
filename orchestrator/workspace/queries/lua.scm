; The wheel's tags know no tables as scopes; these are our own.
(function_declaration name: (identifier) @name) @definition.function
(function_declaration name: (dot_index_expression table: (_) @scope field: (identifier) @name)) @definition.function
(function_declaration name: (method_index_expression table: (_) @scope method: (identifier) @name)) @definition.method
(chunk (assignment_statement (variable_list . name: (identifier) @name)) @definition.constant)
(chunk (variable_declaration (assignment_statement (variable_list . name: (identifier) @name))) @definition.constant)
(assignment_statement (variable_list . name: (dot_index_expression table: (_) @scope field: (identifier) @name)) (expression_list . value: (function_definition))) @definition.function
(variable_declaration (assignment_statement (variable_list . name: (identifier) @name) (expression_list . value: (function_definition)))) @definition.function
(comment) @above
(function_call name: (identifier) @_call arguments: (arguments . (string content: (string_content) @source)) (#eq? @_call "require")) @import
