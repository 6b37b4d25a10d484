"""Words that stand where a password would, and are none: `password: required`, "the password is wrong". Pure.

A password of letters alone looks like a word. Nothing but a list can tell such a password from
`password: mandatory`; what is not in it is hidden, because a false alarm costs less than a password in a log.
"""

from __future__ import annotations

from taoloop.core.text import lazy_pattern

_STATES = """
    absent accepted active allowed ambiguous applied authentication available blank blocked broken bypassed cached
    case changed chosen cleared compromised configured confirmed copied correct correctly created current default
    defined deleted deprecated derived described different disabled displayed documented doubled easy empty
    enabled encoded encrypted enforced entered exactly expired exposed external false filled fine fixed forgotten
    found generated given good guessed handled hardcoded hashed held hidden identical ignored important inactive
    incorrect inherited insecure invalid known leaked limited local locked logged long longer lost managed
    mandatory masked matched mismatch mismatched missing needed neither never nobody nothing null obfuscated
    obsolete obvious okay omitted optional overwritten passed persisted plain plaintext possible present printed
    prompted protected provided public random read ready recommended recorded redacted rejected removed requested
    required reset resolved restricted returned reused rotated saved secure sensitive sent separate set shared
    short shorter shown similar simple skipped sometimes stale static stolen stored strong supplied supported
    synced temporary tested transmitted treated trivial true typed unchanged undefined unique unknown unlocked
    unset unsupported updated usable used useless validated verified vulnerable weak whitespace written wrong
"""
_OPENERS = """
    about according additional after again against all almost also always another anything are around ask asked
    asking at available avoid based because been before being between both build but call can cannot case check
    choose click confirm contact contain contains copy could create currently depends details did does ensure
    enter everyone everything exactly example examples except failed failure field fields file following forgot
    from generate get give handle has have here how however ideally just keep leave length letters like likely
    make maximum may means might minimum more most must need needs not note nothing now only options or our over
    page paste pick placeholder please policy press prompt protect provide read remember remind replace retrieve
    reuse rules same save see select send set several should show since something somewhere start still store such
    take than that the their them then there these they this those three through too try twelve two type typically
    under unless until update use used user users using usually value values verify very via want was were what
    when where whether which while who whose why will with without words would write yes you your
"""
_KINDS = """
    algorithm alphanumeric answer argon array attribute authenticator boolean button bytes callback category
    change characters charfield class column command comparison complexity component config configuration constant
    control credentials cryptography database description detail digest document element encoding encryption
    entropy entry enum environment error event expiry expression field filename filter form format function
    generator getter handler hardware hash hasher hashing header helper hint history identifier image input
    inputtype insert integer interface issue item keychain keyring keyword label layer library link list literal
    location login logout lowercase manager member message method mixed mode model module name nullable number
    numeric object operator option output owner parameter pattern plugin pointer popup process property provider
    query record recovery reference regex regexp register registration relation request requirement requirements
    resource response result return rotation router salt schema screen screenshot scrypt secretref secretstr
    section securestring security session setting settings setup signature signin signup skip status step strategy
    strength string stringfield strings struct subject submit success support symbol syntax system table template
    text textfield textinput theme ticket title toggle token tool topic tutorial type unicode unsigned uppercase
    username validation validator varchar variable vault version view visible warning widget window
"""
_EXAMPLES = """
    changeit changeme dummy example foobar passphrase password sample secret secrets testing
"""
_WORDS = frozenset(f"{_STATES} {_OPENERS} {_KINDS} {_EXAMPLES}".split())

_TYPE_NAME = lazy_pattern(
    r"\w*[a-z](?:Str|String|Field|Type|Input|Value|Text|Schema|Model|Ref|Hash|Hasher|Validator|Dict|Provider|Manager"
    r"|Service|Config|Encoder|Column|Option|Prop|Props|Form|Policy|Reset|Change|Link|Label|Error|Exception|Required)s?"
)
_VARIABLE = lazy_pattern(
    r"(?:my|new|old|your|user|current|confirm|hashed|db|raw|plain|admin|root|temp|default|encrypted|verify|repeat)?"
    r"[Pp]assw(?:or)?d\w*|[a-z]+[A-Z]\w*(?:Password|Passwd|Pwd|Secret)|[a-z]+(?:Password|Passwd|Pwd|Secret)"
)
_FORMATION = lazy_pattern(r"[a-z]{3,}(?:ed|ing|able|ible|ally|less|ation|ition|ness|ment)")


def is_ordinary_word(text: str) -> bool:
    """Whether a text of letters is a word or a name of a type that people write after `password:`, not a password."""
    plain = text.lower()
    patterns = (_VARIABLE, _TYPE_NAME, _FORMATION)
    return plain in _WORDS or any(pattern.fullmatch(text) for pattern in patterns)
