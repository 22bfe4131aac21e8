#pragma once

#include <QByteArray>
#include <QMap>
#include <QPainterPath>
#include <QRegularExpression>
#include <QString>
#include <vector>

#include "gui/models/text.hpp"

namespace shardwright::gui {

struct ClippedPart {
  QString content;
  bool is_clipped = false;
  // The clip has straight lines only.
  QPainterPath clip;
};

inline QPainterPath path_of(const QString& data) {
  static const QRegularExpression kCorner(u"([ML])([-\\d.e+]+) ([-\\d.e+]+)"_s);
  QPainterPath path;
  auto corners = kCorner.globalMatch(data);
  while (corners.hasNext()) {
    const auto corner = corners.next();
    const QPointF at(corner.captured(2).toDouble(), corner.captured(3).toDouble());
    corner.captured(1) == u"M"_s ? path.moveTo(at) : path.lineTo(at);
  }
  return path;
}

inline std::vector<ClippedPart> clipped_parts(const QByteArray& document) {
  static const QRegularExpression kClip(
      u"<clipPath id=\"(\\w+)\"><path clip-rule=\"(\\w+)\" d=\"([^\"]*)\"/></clipPath>"_s);
  static const QRegularExpression kGroup(
      u"^<g(?: clip-path=\"url\\(#(\\w+)\\)\")?>$(.*?)^</g>$(?=\\n(?:<clipPath|<g>|<g "
      "clip-path|</svg>))"_s,
      QRegularExpression::MultilineOption | QRegularExpression::DotMatchesEverythingOption);
  const QString text = QString::fromUtf8(document);
  QMap<QString, QPainterPath> clips;
  for (auto found = kClip.globalMatch(text); found.hasNext();) {
    const auto clip = found.next();
    QPainterPath path = path_of(clip.captured(3));
    path.setFillRule(clip.captured(2) == u"evenodd"_s ? Qt::OddEvenFill : Qt::WindingFill);
    clips.insert(clip.captured(1), path);
  }
  std::vector<ClippedPart> parts;
  for (auto found = kGroup.globalMatch(text); found.hasNext();) {
    const auto group = found.next();
    parts.push_back(
        {group.captured(2), !group.captured(1).isEmpty(), clips.value(group.captured(1))});
  }
  return parts;
}

}  // namespace shardwright::gui
