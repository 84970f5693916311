; The wheel's tags, and: decorators belong to what they decorate; constants at the top only.
(decorated_definition definition: (class_definition name: (identifier) @name)) @definition.class
(decorated_definition definition: (function_definition name: (identifier) @name)) @definition.function
(module (type_alias_statement left: (type (identifier) @name)) @definition.type)
(comment) @above
