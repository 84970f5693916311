; The wheel's tags, and:
(enum_declaration name: (name) @name) @definition.enum
(trait_declaration name: (name) @name) @definition.trait
(method_declaration name: (name) @name) @definition.method
(comment) @above
