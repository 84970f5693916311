[(function_item) (closure_expression) (block) (match_arm) (for_expression)] @scope
(parameter pattern: (identifier) @local)
(closure_parameters (identifier) @local)
(let_declaration pattern: (identifier) @local)
(let_declaration pattern: (tuple_pattern (identifier) @local))
(for_expression pattern: (identifier) @local)
(for_expression pattern: (tuple_pattern (identifier) @local))
(function_item name: (identifier) @outer)
(field_identifier) @member
(scoped_identifier name: (identifier) @member)
