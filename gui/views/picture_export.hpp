// Views as pictures.
#pragma once

#include <QImage>
#include <QString>
#include <QWidget>

namespace shardwright::gui {

// The device pixels of a pixel in pictures that leave the window.
inline constexpr double kExportScale = 2.0;

// The widget as it looks, at this many device pixels a pixel.
QImage picture_of(QWidget& widget, double scale);

// The widget as a document of vectors. Throws RuntimeFailure that names `file`.
QByteArray vectors_of(QWidget& widget, const QString& file = {});

// Writes the format of the suffix: .png (at kExportScale), .svg or .pdf. Throws RuntimeFailure.
void export_picture(QWidget& widget, const QString& file);

// Writes a PNG whatever the suffix of the file is. Throws RuntimeFailure.
void write_png(const QImage& picture, const QString& file);

}  // namespace shardwright::gui
