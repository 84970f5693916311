[(method_declaration) (constructor_declaration) (lambda_expression) (block) (for_statement) (enhanced_for_statement) (catch_clause)] @scope
(formal_parameter name: (identifier) @local)
(local_variable_declaration declarator: (variable_declarator name: (identifier) @local))
(enhanced_for_statement name: (identifier) @local)
(lambda_expression parameters: (identifier) @local)
(inferred_parameters (identifier) @local)
(catch_formal_parameter name: (identifier) @local)
(field_access field: (identifier) @member)
(method_invocation object: (_) name: (identifier) @member)
