#include "gui/models/written_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <QDir>
#include <QFile>
#include <QLabel>
#include <QTemporaryDir>

#include "core/base/error.hpp"
#include "gui/models/text.hpp"
#include "gui/views/picture_export.hpp"

namespace shardwright::gui {
namespace {

// No file of this process grows beyond `bytes` while a FullDisk exists.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit full = {bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &full);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  sighandler_t handler_;
};

QByteArray content_of(const QString& path) {
  QFile file(path);
  EXPECT_TRUE(file.open(QIODevice::ReadOnly)) << qPrintable(path);
  return file.readAll();
}

class WrittenFileTest : public testing::Test {
 protected:
  QString path(const char* name) const { return folder_.filePath(to_qstring(name)); }

  QTemporaryDir folder_;
};

TEST_F(WrittenFileTest, ADeviceWithoutRoomIsReported) {
  EXPECT_THROW(write_text_file(u"/dev/full"_s, u"a,b\n"_s), RuntimeFailure);
  EXPECT_NO_THROW(write_text_file(u"/dev/null"_s, u"a,b\n"_s));
  // It is the device still, and no file that took its place.
  EXPECT_FALSE(QFileInfo(u"/dev/full"_s).isFile());
  EXPECT_FALSE(QFileInfo(u"/dev/null"_s).isFile());
}

TEST_F(WrittenFileTest, EveryKindOfPictureWithoutRoomIsReported) {
  QLabel label(u"a view"_s);
  for (const char* name : {"a.png", "a.svg", "a.pdf"}) {
    ASSERT_TRUE(QFile::link(u"/dev/full"_s, path(name)));
    EXPECT_THROW(export_picture(label, path(name)), RuntimeFailure) << name;
    EXPECT_TRUE(QFileInfo(path(name)).isSymLink()) << name;
  }
}

std::string failure_of(const QString& file, const QString& text) {
  try {
    write_text_file(file, text);
  } catch (const RuntimeFailure& failure) {
    return failure.what();
  }
  return {};
}

TEST_F(WrittenFileTest, AFailureSaysWhatWasExpected) {
  using testing::AllOf, testing::HasSubstr, testing::StartsWith;
  const std::string folder = folder_.path().toStdString();
  EXPECT_THAT(
      failure_of(path("none/a.csv"), u"a"_s),
      AllOf(StartsWith(folder + "/none/a.csv: No such file or directory; expected a folder "),
            HasSubstr("which " + folder + "/none does not")));
  EXPECT_THAT(failure_of(folder_.path(), u"a"_s), HasSubstr("; expected the name of a file"));
  EXPECT_THAT(failure_of(u"/dev/full"_s, u"abc"_s), HasSubstr("; expected room for 3 bytes"));
  EXPECT_THAT(failure_of(u"/proc/version/a.csv"_s, u"a"_s), HasSubstr("; expected a folder "));
}

TEST_F(WrittenFileTest, APictureIsWrittenToItsEnd) {
  QLabel label(u"a view"_s);
  for (const char* name : {"a.png", "a.svg", "a.pdf"}) export_picture(label, path(name));
  EXPECT_FALSE(QImage(path("a.png")).isNull());
  EXPECT_TRUE(content_of(path("a.svg")).trimmed().endsWith("</svg>"));
  EXPECT_TRUE(content_of(path("a.pdf")).trimmed().endsWith("%%EOF"));
}

TEST_F(WrittenFileTest, WhatWasThereBeforeOutlivesAFullDisk) {
  const QString file = path("plan.json");
  write_text_file(file, u"the earlier plan"_s);
  {
    const FullDisk full(1000);
    EXPECT_THROW(write_text_file(file, u"x"_s.repeated(100'000)), RuntimeFailure);
  }
  EXPECT_EQ(content_of(file), QByteArray("the earlier plan"));
  EXPECT_EQ(QDir(folder_.path()).entryList(QDir::Files), QStringList({u"plan.json"_s}));
  write_text_file(file, u"the later plan"_s);
  EXPECT_EQ(content_of(file), QByteArray("the later plan"));
}

TEST_F(WrittenFileTest, ALinkStaysOneAndItsFileIsWritten) {
  write_text_file(path("plan.json"), u"the earlier plan"_s);
  ASSERT_TRUE(QFile::link(path("plan.json"), path("link.json")));
  write_text_file(path("link.json"), u"the later plan"_s);
  EXPECT_TRUE(QFileInfo(path("link.json")).isSymLink());
  EXPECT_EQ(content_of(path("plan.json")), QByteArray("the later plan"));
}

}  // namespace
}  // namespace shardwright::gui
