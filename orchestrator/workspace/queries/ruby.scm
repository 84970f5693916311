; The wheel's tags, and:
(program (assignment left: (constant) @name) @definition.constant)
(comment) @above
(method name: (_) @name) @definition.method
(singleton_method name: (_) @name) @definition.method
(class name: (constant) @name) @definition.class
(class name: (scope_resolution name: (_) @name)) @definition.class
(call method: (identifier) @_call arguments: (argument_list . (string (string_content) @source)) (#match? @_call "^(require|require_relative|load)$")) @import
