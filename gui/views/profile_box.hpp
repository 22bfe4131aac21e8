// A choice among the profiles that are shipped and files of the user.
#pragma once

#include <QComboBox>
#include <QStringList>
#include <map>
#include <string>
#include <vector>

#include "gui/models/text.hpp"

namespace shardwright::gui {

// Its last entry, "Other file…", asks for a file when it is chosen in the list. Keys and the wheel
// pass it by, since a dialog would surprise there.
class ProfileBox : public QComboBox {
  Q_OBJECT

 public:
  // `what` names a profile in the dialog: "Run profile".
  ProfileBox(const QString& name, const QString& what);

  // Adds a shipped profile by its name, or a file by its path; one that is there already stays.
  void add(const QString& name_or_path, const QString& tip);
  bool choose(const QString& name_or_path);
  // The name or path of the profile that is chosen.
  QString chosen() const { return itemData(chosen_).toString(); }
  QStringList files() const;

 Q_SIGNALS:
  void chosen_changed();
  // The user has named a file, which is not among the entries before it is added.
  void file_wanted(const QString& path);

 protected:
  void keyPressEvent(QKeyEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;

 private:
  void take(int index);
  void ask_for_file();

  QString what_;
  int chosen_ = 0;
  bool steps_ = false;
};

// The profiles of a box themselves.
template <class Spec>
struct Profiles {
  ProfileBox* box = nullptr;
  std::map<QString, Spec> specs;

  void add(const QString& name_or_path, const Spec& spec) {
    specs[name_or_path] = spec;
    box->add(name_or_path, to_qstring(spec.notes));
  }
  void add_shipped(const std::vector<std::string>& names, Spec (*load)(const std::string&)) {
    for (const std::string& name : names) add(to_qstring(name), load(name));
  }
  const Spec& chosen() const { return specs.at(box->chosen()); }
};

}  // namespace shardwright::gui
