; The wheel has no tags.
(section . (atx_heading heading_content: (inline) @name)) @definition.heading
(setext_heading heading_content: (paragraph) @name) @definition.heading
