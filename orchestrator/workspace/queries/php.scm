; The wheel's tags, and:
(enum_declaration name: (name) @name) @definition.enum
(trait_declaration name: (name) @name) @definition.trait
(method_declaration name: (name) @name) @definition.method
(comment) @above
(namespace_use_clause [(qualified_name) (name)] @source) @import
(require_expression [(_ (string_content) @source) (binary_expression (_ (string_content) @source))]) @import
(require_once_expression [(_ (string_content) @source) (binary_expression (_ (string_content) @source))]) @import
(include_expression [(_ (string_content) @source) (binary_expression (_ (string_content) @source))]) @import
(include_once_expression [(_ (string_content) @source) (binary_expression (_ (string_content) @source))]) @import
