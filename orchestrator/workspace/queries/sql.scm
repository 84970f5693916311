; The wheel has no tags.
(statement (create_table (object_reference name: (_) @name))) @definition.table
(statement (create_view . (_) . (_) . (object_reference name: (_) @name))) @definition.view
(statement (create_index column: (identifier) @name)) @definition.index
(statement (create_function . (_) . (_) . (object_reference name: (_) @name))) @definition.function
(statement (create_trigger . (_) . (_) . (object_reference name: (_) @name))) @definition.trigger
(statement (create_type . (_) . (_) . (object_reference name: (_) @name))) @definition.type
[(comment) (marginalia)] @above
