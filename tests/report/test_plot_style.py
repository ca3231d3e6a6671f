from surelabel.report.plot_style import (
    PAPER,
    TEXT,
    figure_to_png,
    new_figure,
    set_log_count_axis,
    shorten_label,
    style_axes,
)


def test_a_note_is_written_below_the_axes(pixels):
    def made(note):
        figure = new_figure(3)
        figure.subplots()
        return pixels(figure_to_png(figure, left=0.1, bottom=0.2, top=0.9, note=note))

    bare, noted = made(""), made("a word " * 30)
    edge = slice(-16, None)
    assert (bare[edge] == 255).all()
    assert (noted[edge] < 200).any()


def test_a_logarithmic_scale_has_room_for_a_single_count(share_of):
    figure = new_figure(3)
    axes = figure.subplots()
    style_axes(axes)
    set_log_count_axis(axes, 0)
    assert share_of(PAPER, figure_to_png(figure, left=0.1, bottom=0.1, top=0.9)) > 0.5


def test_a_name_on_several_lines_is_put_on_one():
    assert shorten_label("a\n b\tc") == "a b c"
    assert shorten_label("abcdef", 4) == "abc…"
    assert TEXT != PAPER
