; The wheel's tags, and: implementations, which hold their methods.
(impl_item type: [
  (type_identifier) @name
  (generic_type type: (type_identifier) @name)
  (scoped_type_identifier name: (type_identifier) @name)
]) @definition.impl
(struct_item name: (_) @name) @definition.struct
(enum_item name: (_) @name) @definition.enum
(union_item name: (_) @name) @definition.union
(trait_item name: (_) @name) @definition.trait
(type_item name: (_) @name) @definition.type
(function_signature_item name: (_) @name) @definition.function
(const_item name: (_) @name) @definition.constant
(static_item name: (_) @name) @definition.constant
[(line_comment) (block_comment) (attribute_item)] @above
(use_declaration argument: (_) @source) @import
(mod_item name: (identifier) @module !body) @import
(extern_crate_declaration name: (identifier) @source) @import
