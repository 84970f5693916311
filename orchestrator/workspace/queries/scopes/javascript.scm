[(function_declaration) (generator_function_declaration) (function_expression) (generator_function) (arrow_function) (method_definition) (statement_block) (for_statement) (for_in_statement) (catch_clause)] @scope
(formal_parameters (identifier) @local)
(formal_parameters (assignment_pattern left: (identifier) @local))
(arrow_function parameter: (identifier) @local)
(variable_declarator name: (identifier) @local)
(shorthand_property_identifier_pattern) @local
(pair_pattern value: (identifier) @local)
(array_pattern (identifier) @local)
(rest_pattern (identifier) @local)
(catch_clause parameter: (identifier) @local)
(for_in_statement left: (identifier) @local)
(function_declaration name: (identifier) @outer)
(class_declaration name: (identifier) @outer)
(property_identifier) @member
