; The wheel has no tags.
(rule_set (selectors) @name) @definition.rule
(keyframes_statement (keyframes_name) @name) @definition.rule
(media_statement . (_) @name) @definition.rule
(comment) @above
