// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.gguf;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Session;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import dev.gantry.formats.spi.WeightsFormat;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.SequencedMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// The GGUF format: a single file, or a set of numbered files, which are opened together.
public final class GgufFormat implements WeightsFormat {
  /// The format's name in catalogues.
  static final String CATALOGUE = "gguf";

  private static final String SUFFIX = ".gguf";
  private static final String COUNT = "split.count";

  /// Matches the names of files that belong together, such as `model-00001-of-00003.gguf`.
  private static final Pattern NUMBERED =
      Pattern.compile("(.*)-([0-9]{5})-of-([0-9]{5})\\.gguf", Pattern.DOTALL);

  @Override
  public String name() {
    return "GGUF";
  }

  @Override
  public List<String> suffixes() {
    return List.of(SUFFIX);
  }

  @Override
  public boolean recognises(String fileName, ByteBuffer start) {
    return GgufHeader.hasMagic(start);
  }

  @Override
  public boolean recognisesFolder(List<Location> files) {
    return files.stream().anyMatch(GgufFormat::isNamed);
  }

  private static boolean isNamed(Location file) {
    return file.fileName().endsWith(SUFFIX);
  }

  @Override
  public WeightsCatalogue open(FileBytes file) {
    GgufHeader header = GgufHeader.read(file);
    int count = number(header, COUNT, 1);
    List<GgufHeader> headers = count <= 1 ? List.of(header) : all(file.session(), header, count);
    SequencedMap<String, StoredTensor> tensors = new LinkedHashMap<>();
    SequencedMap<String, String> notes = new LinkedHashMap<>();
    List<StoredTensor> values = new ArrayList<>();
    for (GgufHeader each : headers) {
      each.notes().forEach(notes::putIfAbsent);
      values.addAll(each.values());
      for (StoredTensor tensor : each.tensors()) {
        StoredTensor earlier = tensors.putIfAbsent(tensor.name(), tensor);
        if (earlier != null) {
          throw new MalformedFileException(
              each.file(),
              tensor.extent().offset(),
              "duplicate-tensor",
              "tensor '" + tensor.name() + "' is also in " + earlier.extent().file());
        }
      }
    }
    return new WeightsCatalogue(
        CATALOGUE,
        headers.stream().map(GgufHeader::file).toList(),
        tensors.values(),
        notes,
        List.of(),
        values);
  }

  /// Opens the folder's only file, or its only set of numbered files.
  @Override
  public WeightsCatalogue openFolder(Session session, Location folder, List<Location> files) {
    List<Location> first =
        files.stream()
            .filter(GgufFormat::isNamed)
            .filter(file -> {
              Matcher name = NUMBERED.matcher(file.fileName());
              return !name.matches() || Integer.parseInt(name.group(2)) == 1;
            })
            .toList();
    if (first.size() != 1) {
      throw new MalformedFileException(
          folder,
          0,
          first.isEmpty() ? "missing-data-files" : "several-files",
          first.isEmpty()
              ? "the folder lacks the first of its numbered GGUF files"
              : first.size() + " GGUF files are not parts of one model; name one of them");
    }
    try (FileBytes file = FileBytes.open(session, first.getFirst())) {
      return open(file);
    }
  }

  /// Reads the headers of all files of a set, in the order of their numbers.
  ///
  /// @param one the header of one file of the set
  private static List<GgufHeader> all(Session session, GgufHeader one, int count) {
    Matcher name = NUMBERED.matcher(one.file().fileName());
    if (!name.matches() || Integer.parseInt(name.group(3)) != count) {
      throw malformed(
          one,
          "invalid-name",
          "the file is one of %s, and its name does not end in -NNNNN-of-%s"
              .formatted(count, padded(count) + SUFFIX));
    }
    List<GgufHeader> all = new ArrayList<>();
    for (int i = 1; i <= count; i++) {
      String sibling = name.group(1) + "-" + padded(i) + "-of-" + padded(count) + SUFFIX;
      GgufHeader header =
          sibling.equals(one.file().fileName()) ? one : read(session, one.file().sibling(sibling));
      if (number(header, COUNT, 1) != count || number(header, "split.no", 0) != i - 1) {
        throw malformed(
            header,
            "wrong-number",
            "the file says that it is number %s of %s, and its name says %s of %s"
                .formatted(number(header, "split.no", 0) + 1, number(header, COUNT, 1), i, count));
      }
      all.add(header);
    }
    long tensors = all.stream().mapToLong(header -> header.tensors().size()).sum();
    long said = number(all.getFirst(), "split.tensors.count", -1);
    if (said >= 0 && said != tensors) {
      throw malformed(
          all.getFirst(),
          "missing-tensors",
          "the files have " + tensors + " tensors together, and the first says " + said);
    }
    return all;
  }

  private static GgufHeader read(Session session, Location file) {
    try (FileBytes bytes = FileBytes.open(session, file)) {
      return GgufHeader.read(bytes);
    }
  }

  /// Returns a note that is a whole number.
  private static int number(GgufHeader header, String key, int otherwise) {
    String value = header.notes().get(key);
    if (value == null) {
      return otherwise;
    }
    if (!value.matches("[0-9]{1,9}")) {
      throw malformed(header, "invalid-note", key + " must be a number (was " + value + ")");
    }
    return Integer.parseInt(value);
  }

  private static String padded(int number) {
    return String.format(Locale.ROOT, "%05d", number);
  }

  private static MalformedFileException malformed(GgufHeader header, String kind, String detail) {
    return new MalformedFileException(header.file(), 0, kind, detail);
  }
}
