; The wheel has no tags.
(pair key: (string (string_content) @name)) @definition.key
(comment) @above
