; The wheel has no tags: headings, and elements with an id.
(element (start_tag (tag_name) @_tag) . (text) @name (#match? @_tag "^[hH][1-6]$")) @definition.heading
(element (start_tag (attribute (attribute_name) @_attribute (quoted_attribute_value (attribute_value) @name))) (#eq? @_attribute "id")) @definition.element
(script_element (start_tag (attribute (attribute_name) @_attribute (quoted_attribute_value (attribute_value) @name))) (#eq? @_attribute "id")) @definition.element
(comment) @above
(script_element (start_tag (attribute (attribute_name) @_src (quoted_attribute_value (attribute_value) @source))) (#eq? @_src "src")) @import
(element (start_tag (tag_name) @_tag (attribute (attribute_name) @_href (quoted_attribute_value (attribute_value) @source))) (#eq? @_tag "link") (#eq? @_href "href")) @import
