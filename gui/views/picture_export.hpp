// Views as pictures.
#pragma once

#include <QImage>
#include <QString>
#include <QWidget>

namespace shardwright::gui {

// The widget as it looks, at this many device pixels a pixel.
QImage picture_of(QWidget& widget, double scale);

// The widget as a document of vectors. Throws RuntimeFailure that names `file`.
QByteArray vectors_of(QWidget& widget, const QString& file = {});

// Writes the format of the suffix: .png (twice the resolution), .svg or .pdf. Throws RuntimeFailure.
void export_picture(QWidget& widget, const QString& file);

// Writes a PNG whatever the suffix of the file is. Throws RuntimeFailure.
void write_png(const QImage& picture, const QString& file);

}  // namespace shardwright::gui
