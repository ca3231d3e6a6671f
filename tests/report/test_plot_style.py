from surelabel.report.plot_style import (
    PAPER,
    TEXT,
    apply_plot_style_to_axes,
    new_figure_in_plot_style,
    plot_style_figure_to_png,
    set_plot_style_log_count_axis,
    shorten_label_for_plot_style,
)


def test_a_note_is_written_below_the_axes(pixels):
    def made(note):
        figure = new_figure_in_plot_style(3)
        figure.subplots()
        return pixels(plot_style_figure_to_png(figure, left=0.1, bottom=0.2, top=0.9, note=note))

    bare, noted = made(""), made("a word " * 30)
    edge = slice(-16, None)
    assert (bare[edge] == 255).all()
    assert (noted[edge] < 200).any()


def test_a_logarithmic_scale_has_room_for_a_single_count(share_of):
    figure = new_figure_in_plot_style(3)
    axes = figure.subplots()
    apply_plot_style_to_axes(axes)
    set_plot_style_log_count_axis(axes, 0)
    assert share_of(PAPER, plot_style_figure_to_png(figure, left=0.1, bottom=0.1, top=0.9)) > 0.5


def test_a_name_on_several_lines_is_put_on_one():
    assert shorten_label_for_plot_style("a\n b\tc") == "a b c"
    assert shorten_label_for_plot_style("abcdef", 4) == "abc…"
    assert TEXT != PAPER
