"""taoloop: a ReAct agent runtime whose every action can be checked, recorded, stopped and replaced."""
