; A call without an object takes what its classes call so (@function, by @outer), whatever its variables are called;
; what a class does not have itself, it may have from others (@derived).
[(method_declaration) (constructor_declaration) (lambda_expression) (block) (for_statement) (enhanced_for_statement) (catch_clause)] @scope
[(class_body) (interface_body) (enum_body) (annotation_type_body)] @scope
(class_declaration [(superclass) (super_interfaces)] body: (_) @derived)
(interface_declaration (extends_interfaces) body: (_) @derived)
(enum_declaration (super_interfaces) body: (_) @derived)
(record_declaration (super_interfaces) body: (_) @derived)
(object_creation_expression (class_body) @derived)
(enum_constant body: (_) @derived)
(method_declaration name: (identifier) @outer)
(field_declaration declarator: (variable_declarator name: (identifier) @local))
(enum_constant name: (identifier) @local)
(formal_parameter name: (identifier) @local)
(local_variable_declaration declarator: (variable_declarator name: (identifier) @local))
(enhanced_for_statement name: (identifier) @local)
(lambda_expression parameters: (identifier) @local)
(inferred_parameters (identifier) @local)
(catch_formal_parameter name: (identifier) @local)
(method_invocation !object name: (identifier) @function)
(field_access field: (identifier) @member)
(method_invocation object: (_) name: (identifier) @member)
