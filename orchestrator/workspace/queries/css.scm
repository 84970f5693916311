; The wheel has no tags.
(rule_set (selectors) @name) @definition.rule
(keyframes_statement (keyframes_name) @name) @definition.rule
(media_statement . (_) @name) @definition.rule
(comment) @above
(import_statement (string_value (string_content) @source)) @import
(import_statement (call_expression (arguments (string_value (string_content) @source)))) @import
