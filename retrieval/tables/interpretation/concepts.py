"""What everyday words mean among the names of columns, and which units measure the same, in English and Dutch. PURE.

Words are folded (small, without accents) and compared by stems.
"""

from __future__ import annotations

from retrieval.tables.words import stems_of

# Words of a question, and words of columns' names (or units) that mean the same.
_CONCEPTS: dict[str, tuple[str, str]] = {
    "price": (
        "price prices priced cost costs costing pay pays expensive cheap kost kosten kostte prijs prijzen duur goedkoop"
        " betaal betalen betaalt tarief tarieven rate fee fees charge tarif euro euros dollar dollars",
        "price cost eur usd gbp euro dollar fee rate tarief prijs kosten bedrag amount tariff charge vergoeding",
    ),
    "weight": (
        "weight weigh weighs weighed heavy light gewicht weegt wegen zwaar licht",
        "weight g kg gram grams mass gewicht massa lb lbs",
    ),
    "length": (
        "length long short lengte lang kort duration duur duurt lasts last takes take",
        "length mm cm m km min minutes runtime duration lengte duur miles hours days period periode",
    ),
    "height": ("height tall high hoog hoogte elevation", "height m cm ft hoogte elevation altitude"),
    "size": (
        "size big large small groot klein grootte omvang",
        "size diameter surface screen area population inhabitants employees total volume"
        " capacity oppervlakte inwoners grootte m2 km2 sqm",
    ),
    "age": (
        "age old young oud jong leeftijd",
        "age year founded built born birth birthday leeftijd jaar geboren geboortedatum bouwjaar opgericht"
        " opened start",
    ),
    "speed": ("speed fast quick slow snel snelheid traag", "speed kmh mph velocity snelheid time seconds rpm"),
    "rating": (
        "rating rated score scored scores good bad best",
        "rating score stars grade points mark cijfer beoordeling rank",
    ),
    "popular": (
        "popular popularity loved liked populair populaire geliefd gewild",
        "popularity popular votes vote rating win wins score likes views rank sales sold populariteit stemmen",
    ),
    "wealth": (
        "earn earns earned earning salary salaries pay paid wage wages income rich poor verdien verdient verdienen"
        " salaris loon inkomen rijk arm",
        "salary salaries wage wages income pay earnings median salaris loon inkomen verdiensten gdp",
    ),
    "warmth": (
        "temperature hot cold warm heet koud temperatuur",
        "temperature temp celsius degrees temperatuur graden",
    ),
    "density": (
        "busy populous crowded populated drukte",
        "population inhabitants visitors passengers inwoners density",
    ),
    "death": (
        "die dies died dead death deaths killed kill fatal fatality fatalities doden dood overleden stierven gedood",
        "fatalities deaths death dead killed died fatality doden overleden slachtoffers",
    ),
    "live": (
        "live lives living inhabitant inhabitants population residents wonen woont inwoner inwoners bevolking",
        "population inhabitants residents inwoners bevolking",
    ),
    "stock": ("stock left available voorraad", "stock quantity qty inventory voorraad aantal"),
    "play": (
        "play plays played playing act acts acted acting actor actors actress star stars starring starred cast"
        " acteur acteurs actrice speelt spelen speelde speelden rol",
        "performer actor actress cast player artist acteur speler",
    ),
    "where": (
        "where located location live based city waar gevestigd plaats locatie",
        "location place city town address country room floor office plaats stad adres locatie land kamer verdieping",
    ),
    "open": (
        "open opens opening close closes closing hours openingstijden opent sluit geopend gesloten",
        "open opens opening close closes closing hours open sluit openingstijden tijden",
    ),
    "phone": (
        "phone telephone call number bellen telefoon telefoonnummer nummer doorkiesnummer bel",
        "phone telephone tel mobile extension telefoon telefoonnummer doorkiesnummer",
    ),
    "mail": ("email mail mailadres emailadres", "email mail mailadres"),
    "lead": (
        "lead leads manager boss head runs leidt leider chef baas",
        "manager boss head lead supervisor leidinggevende chef",
    ),
    "hire": (
        "hired joined started hire join aangenomen begonnen dienst",
        "hire hired joined start since indienst datum",
    ),
    "speech": ("language languages taal talen speak spoken spreekt", "language languages taal talen"),
    "born": (
        "born birth birthday geboren geboorte jarig",
        "born birth birthday dob geboren geboortedatum geboortejaar",
    ),
    "write": ("wrote written writer author schreef geschreven schrijver auteur", "author writer auteur schrijver"),
    "direct": ("directed director regie regisseur", "director regisseur"),
    "visit": (
        "visit visiting visited visitors bezoek bezoeken bezocht bezoekers",
        "visitors visiting bezoekers bezoekuren bezoek",
    ),
    "mean": ("mean means meaning betekent betekenis", "meaning description betekenis omschrijving"),
    "belong": ("department departments afdeling team", "department team afdeling division"),
}
CONCEPTS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    name: (frozenset(stems_of(asked)), frozenset(stems_of(columns))) for name, (asked, columns) in _CONCEPTS.items()
}
CONCEPTS_OF_STEM: dict[str, tuple[str, ...]] = {
    word: tuple(name for name, (asked, _) in CONCEPTS.items() if word in asked)
    for word in frozenset().union(*(asked for asked, _ in CONCEPTS.values()))
}
# Factors to a unit of the same kind; units of other kinds cannot be compared.
_UNITS: dict[str, str] = {
    "mass": "mg=0.001 g=1 gram=1 grams=1 kg=1000 kilo=1000 kilos=1000 kilogram=1000 t=1000000 ton=1000000 tons=1000000"
    " lb=453.592 lbs=453.592 oz=28.3495",
    "length": "mm=0.001 cm=0.01 m=1 meter=1 meters=1 metre=1 metres=1 km=1000 kilometer=1000 kilometers=1000"
    " kilometre=1000 kilometres=1000 mile=1609.34 miles=1609.34 ft=0.3048 inch=0.0254",
    "volume": "ml=0.001 cl=0.01 l=1 liter=1 liters=1 litre=1 litres=1",
    "time": "s=1 sec=1 second=1 seconds=1 min=60 minute=60 minutes=60 minuten=60 minuut=60 h=3600 hr=3600 hour=3600"
    " hours=3600 uur=3600 uren=3600 day=86400 days=86400 dag=86400 dagen=86400 week=604800 weeks=604800 weken=604800",
    "years": "year=1 years=1 jaar=1 jaren=1 yr=1 yrs=1",
    "eur": "eur=1 euro=1 euros=1 €=1",
    "usd": "usd=1 dollar=1 dollars=1 $=1",
    "gbp": "gbp=1 pound=1 pounds=1 £=1",
    "percent": "%=1 percent=1 percentage=1 procent=1 pct=1",
    "pressure": "bar=1 mbar=0.001 kpa=0.01 psi=0.0689476",
    "power": "w=1 watt=1 watts=1 kw=1000",
    "voltage": "v=1 volt=1 volts=1 kv=1000",
    "area": "m2=1 sqm=1 km2=1000000",
    "data": "kb=0.001 mb=1 gb=1000 tb=1000000",
}
UNITS: dict[str, tuple[str, float]] = {
    name: (kind, float(factor))
    for kind, row in _UNITS.items()
    for name, factor in (pair.split("=") for pair in row.split())
}
