"""What changes files: commands are decided, carried out, wait, are undone and recovered.

Begin with pipeline.py: facts, permission, decision, then approval or conflict or effects, and the answer.

- write_operations, undo: the operations
- facts: what is at each path, where it was moved to, and the base; change_rules: what needs a yes besides the policy
- effects, write_batch: intent, disk, outcome; recovery: the same for what a crash left open
- approvals: a person's yes or no; elicitations: in an agent's client; conflict_recorder: what could not be applied
- change_answers, diffs: what callers are answered, from a decision or from the journal
"""
