; The wheel has no tags.
(block_mapping_pair key: (_) @name) @definition.key
(comment) @above
