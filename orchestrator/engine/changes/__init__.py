"""What changes files: commands decided, carried out, waited for, undone, recovered."""
