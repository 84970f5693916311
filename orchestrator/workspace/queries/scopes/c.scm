[(function_definition) (compound_statement) (for_statement)] @scope
(parameter_declaration declarator: (identifier) @local)
(parameter_declaration declarator: (pointer_declarator declarator: (identifier) @local))
(declaration declarator: (identifier) @local)
(declaration declarator: (pointer_declarator declarator: (identifier) @local))
(declaration declarator: (array_declarator declarator: (identifier) @local))
(init_declarator declarator: (identifier) @local)
(init_declarator declarator: (pointer_declarator declarator: (identifier) @local))
(init_declarator declarator: (array_declarator declarator: (identifier) @local))
(field_identifier) @member
