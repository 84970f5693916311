; The wheel's tags, and: a method belongs to its receiver's type; a lone type is its whole declaration.
(method_declaration receiver: (parameter_list (parameter_declaration type: [
  (type_identifier) @scope
  (pointer_type (type_identifier) @scope)
  (generic_type type: (type_identifier) @scope)
  (pointer_type (generic_type type: (type_identifier) @scope))
])) name: (field_identifier) @name) @definition.method
(type_declaration . (type_spec name: (type_identifier) @name type: (struct_type)) .) @definition.struct
(type_declaration . (type_spec name: (type_identifier) @name type: (interface_type)) .) @definition.interface
(type_declaration . (type_spec name: (type_identifier) @name) .) @definition.type
(type_declaration . (type_alias name: (type_identifier) @name) .) @definition.type
(source_file (const_declaration . (const_spec . name: (identifier) @name) .) @definition.constant)
(source_file (var_declaration . (var_spec . name: (identifier) @name) .) @definition.variable)
(comment) @above
(function_declaration name: (identifier) @name) @definition.function
(import_spec path: (interpreted_string_literal (interpreted_string_literal_content) @source)) @import
