from surelabel.report.drawing import PAPER, TEXT, drawn, powers, sheet, shortened, style


def test_a_note_is_written_below_the_axes(pixels):
    def made(note):
        figure = sheet(3)
        figure.subplots()
        return pixels(drawn(figure, left=0.1, bottom=0.2, top=0.9, note=note))

    bare, noted = made(""), made("a word " * 30)
    edge = slice(-16, None)
    assert (bare[edge] == 255).all()
    assert (noted[edge] < 200).any()


def test_a_logarithmic_scale_has_room_for_a_single_count(share_of):
    figure = sheet(3)
    axes = figure.subplots()
    style(axes)
    powers(axes, 0)
    assert share_of(PAPER, drawn(figure, left=0.1, bottom=0.1, top=0.9)) > 0.5


def test_a_name_on_several_lines_is_put_on_one():
    assert shortened("a\n b\tc") == "a b c"
    assert shortened("abcdef", 4) == "abc…"
    assert TEXT != PAPER
