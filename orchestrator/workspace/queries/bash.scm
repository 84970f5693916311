; The wheel has no tags.
(function_definition name: (word) @name) @definition.function
(program (variable_assignment name: (variable_name) @name) @definition.variable)
(program (declaration_command (variable_assignment name: (variable_name) @name)) @definition.variable)
(comment) @above
(command name: (command_name) @_call . argument: (_) @source (#match? @_call "^(source|\\.)$")) @import
