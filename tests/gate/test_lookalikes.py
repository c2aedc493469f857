"""Letters that look like others are pointed out, by Unicode's own list; honest texts are left alone (SR-3)."""

import pytest
from confusable_homoglyphs.confusables import confusables_data

from hitlchat.base.visible import Kind, Warned, see

# Each is a letter of a living language in which the words around look the same: hosts and addresses with it are
# pointed out all the same.
EXCEPTIONS = {"\u0131"}
FOREIGN = {
    "Cyrillic": ["АСМЕ", "раура", "Сара", "СОСО"],
    "Greek": ["ΑΝΝΑ", "ΒΟΑ", "ρογο"],
    "Armenian": ["Սոս", "ՍՕՏ"],
    "Cherokee": ["ᎪᏀ", "ᏔᎪᎳ"],
    "Lisu": ["ꓐꓮꓠꓗ"],
    "Coptic": ["ⲞⲢⲤ", "ⲤⲞ"],
    "Canadian Aboriginal": ["ᗅᗞ"],
    "Hebrew": ["סוס"],
    "Arabic": ["اه"],
    "Bengali": ["৪৭"],
    "Deseret": ["𐐄𐐕"],
    "Osage": ["𐓂𐓎"],
}
HONEST = {
    "Russian": [
        "Привет! Мы с Анной идём в магазин, а потом домой.",
        "Егор Оксанин",
        "Встреча Google с Apple в Москве",
        "ТВ и радио у нас в 10 ч.",
    ],
    "Ukrainian": ["Ми з Ольгою їдемо у Львів, а потім — і до Києва.", "Їжак і він", "Тарас Шевченко"],
    "Serbian": ["Ја сам у Београду, а он је код куће.", "Љубица Јовановић"],
    "Bulgarian": ["Аз съм у дома, а ти си в София.", "Елена и Георги"],
    "Greek": ["Είμαι ο Νίκος και μένω στην Αθήνα.", "ΟΔΟΣ ΑΘΗΝΑΣ ΚΑΙ ΕΡΜΟΥ", "Η τιμή α και β"],
    "Armenian": ["Բարև, ես Արամն եմ։ Ապրում եմ Երևանում։", "Արամ Խաչատրյան"],
    "Cherokee": ["ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ᎠᏍᏆᏗ", "ᎣᏏᏲ"],
    "Chinese": ["二〇二六年，我们使用API接口。谢谢你！", "张伟", "价格：100元（含税）"],
    "Japanese": ["東京タワーへ行きました。Tシャツを2枚、ノートを買う。", "〇〇さん、ハロー", "山田太郎"],
    "Arabic": ["مرحبا بالعالم", "محمد علي"],
    "Hebrew": ["שלום, עולם!", "דוד כהן"],
    "accents": [
        "Größe, Straße, naïve, façade, Łódź, Ærø, œuvre, señor, Đặng, Işık Yılmaz",
        "L’été – “déjà vu” … 5–7 °C",
    ],
    "signs": ["1920×1080 px, 3 × 4", "α-helix, γ-ray and β", "Δ ≈ 5 µm", "½ № ™ ℃ 2º", "— a list • of ‘things’"],
}
KINDS: list[tuple[str, Kind]] = [
    ("pay to АСМЕ", "look_alike"),
    ("АСМЕ_key", "look_alike"),
    ("refund_\u043erder", "look_alike"),
    ("\u0261eorge", "look_alike"),
    ("Пишите на аре@acme.example сейчас", "address"),
    ("\u0261eorge@acme.example", "address"),
    ("g\u0131thub.com", "host"),
    ("www\u3002evil\u3002com", "host"),
    ("打开evil\u3002com", "host"),
    ("acme\u2011modern.example", "host"),
    ("exämple.org", "host"),
    ("xn--pypal-4ve.com", "punycode"),
    ("\u22125000", "look_alike"),
    ("1\u06660", "look_alike"),
    ("1\u09ea", "look_alike"),
    ("\uff11\uff12", "look_alike"),
    ("https:\u2215\u2215evil", "look_alike"),
    ("\U0001d429\U0001d41a\U0001d432", "look_alike"),
    ("a\u202eb", "direction"),
    ("a\u200bb", "hidden"),
    ("a\u0336b", "marks"),
    ("a \u05e9\u05dc\u05d5\u05dd", "right_to_left"),
]


def of_kind(text: str, kind: Kind) -> list[Warned]:
    return [warning for warning in see(text).warnings if warning.kind == kind]


@pytest.mark.guarantee("SR-3")
def test_every_character_that_unicode_says_looks_like_a_letter_or_digit_is_pointed_out() -> None:
    looks = [
        char
        for plain, others in confusables_data.items()
        if plain.isascii() and ((plain.isalnum() and len(plain) == 1) or plain == "rn")
        for char in (other["c"].strip("\u200e") for other in others)
        if len(char) == 1 and not char.isascii()
    ]
    missed = {char for char in looks if not of_kind(f"pay{char}pal", "look_alike")}
    print(f"{len(looks) - len(missed)} of {len(looks)} are pointed out")  # noqa: T201 - the figure is what the test is for
    assert len(looks) > 1300
    assert missed == EXCEPTIONS
    assert all(of_kind(f"pay{char}pal.example", "host") for char in missed)


@pytest.mark.guarantee("SR-3")
def test_a_word_that_is_foreign_altogether_is_pointed_out_with_its_script(subtests: pytest.Subtests) -> None:
    for script, words in FOREIGN.items():
        for word in words:
            for text in (word, f"Pay to {word} now", f"{word}_id", f"see {word}, and Иван"):
                with subtests.test(text=text):
                    if not (text.endswith("Иван") and script == "Cyrillic"):
                        assert any(f"“{word}” is written in {script} letters" in each for each in see(text).warnings)


def test_a_warning_names_the_word_each_letter_and_what_they_look_like() -> None:
    assert see("АСМЕ").warnings == (
        "“АСМЕ” is written in Cyrillic letters that look like “ACME”: А (U+0410, like “A”), Е (U+0415, like “E”), "
        "М (U+041C, like “M”), С (U+0421, like “C”).",
    )
    assert see("refund_\u043erder").warnings == (
        "“\u043erder” reads like “order”, but has look-alikes: \u043e (U+043E, like “o”).",
    )


def test_of_many_words_some_are_named_and_the_others_counted() -> None:
    words = [f"\u0430{letter}" for letter in "bcdefg"]
    assert see(" ".join(words)).warnings[3:] == ("3 more words have look-alikes of other letters.",)


@pytest.mark.guarantee("SR-3")
def test_each_trick_is_of_the_kind_that_programs_go_by(subtests: pytest.Subtests) -> None:
    for text, kind in KINDS:
        with subtests.test(text=text):
            assert of_kind(text, kind)


def test_honest_texts_are_left_alone(subtests: pytest.Subtests) -> None:
    for texts in HONEST.values():
        for text in texts:
            with subtests.test(text=text):
                assert see(text).warnings == ()
