// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.formats.internal.checkpoint.Manifest.FileEntry;
import dev.gantry.formats.internal.json.JsonMembers;
import dev.gantry.formats.internal.json.JsonReader;
import dev.gantry.formats.internal.json.JsonReader.Kind;
import dev.gantry.formats.internal.json.MemberNames;
import dev.gantry.formats.spi.FileBytes;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.OptionalLong;
import java.util.SequencedMap;
import java.util.Set;
import java.util.function.Supplier;

/// Reads a manifest. It skips unknown members, so that later versions may add some.
final class ManifestParser {
  private final FileBytes bytes;
  private final boolean withFiles;
  private final JsonReader json;
  private final Set<String> fileNames = new HashSet<>();
  private int ownChecksum;
  private OptionalLong ownChecksumOffset = OptionalLong.empty();

  /// @param withFiles whether to parse and keep the files' entries; if not, only the checksum of
  ///     all bytes covers them
  /// @throws MalformedFileException of kind `manifest-too-large`
  ManifestParser(FileBytes bytes, boolean withFiles) {
    this.bytes = bytes;
    this.withFiles = withFiles;
    if (bytes.length() > Manifest.MAX_BYTES) {
      throw new MalformedFileException(
          bytes.file(),
          0,
          "manifest-too-large",
          bytes.length() + " bytes, more than " + Manifest.MAX_BYTES);
    }
    this.json = new JsonReader(bytes, 0, bytes.length());
  }

  Manifest parse() {
    requireObject("not-an-object", "the manifest");
    MemberNames members = new MemberNames(json, "the manifest", 0);
    OptionalLong step = OptionalLong.empty();
    OptionalLong sequence = OptionalLong.empty();
    SequencedMap<String, Long> history = new LinkedHashMap<>();
    boolean finite = true;
    SequencedMap<String, String> state = new LinkedHashMap<>();
    SequencedMap<String, Double> metrics = new LinkedHashMap<>();
    SequencedMap<String, String> metadata = new LinkedHashMap<>();
    List<FileEntry> files = new ArrayList<>();
    for (boolean more = json.beginObject(); more; more = json.nextMember()) {
      switch (members.next()) {
        case "format" -> checkFormat();
        case "version" -> checkVersion();
        case "crc32c" -> {
          ownChecksum = checksum();
          ownChecksumOffset = OptionalLong.of(json.valueOffset());
        }
        case "step" -> step = OptionalLong.of(json.count("step"));
        case "sequence" -> sequence = OptionalLong.of(json.count("sequence"));
        case "history" -> history = map("history", () -> json.count("save"));
        case "finite" -> {
          json.require(Kind.BOOLEAN, "invalid-finite", "finite");
          finite = json.flag();
        }
        case "state" -> state = map("state", () -> string("state"));
        case "metrics" -> metrics = map("metrics", this::metric);
        case "metadata" -> metadata = map("metadata", () -> string("metadata"));
        case "files" -> {
          if (withFiles) {
            files = files();
          } else {
            json.skip();
          }
        }
        default -> unknown();
      }
    }
    json.end();
    ownChecksumOffset.ifPresent(offset -> checkBytes(offset + 1));
    members.require(List.of("format", "version", "step", "sequence", "files", "crc32c"));
    return new Manifest(
        step.orElseThrow(),
        sequence.orElseThrow(),
        new SaveHistory(history),
        finite,
        state,
        metrics,
        metadata,
        files);
  }

  /// Returns the save's number of a damaged manifest; empty if the damage comes before the number.
  ///
  /// @param step the training step that the manifest must have, too
  OptionalLong sequence(long step) {
    OptionalLong found = OptionalLong.empty();
    boolean ofStep = false;
    try {
      requireObject("not-an-object", "the manifest");
      for (boolean more = json.beginObject(); more; more = json.nextMember()) {
        switch (json.memberName()) {
          case "step" -> ofStep = json.count("step") == step;
          case "sequence" -> found = OptionalLong.of(json.count("sequence"));
          default -> json.skip();
        }
        if (ofStep && found.isPresent()) {
          return found;
        }
      }
    } catch (MalformedFileException _) {
      // Nothing after the damage can be read.
    }
    return OptionalLong.empty();
  }

  /// Skips an unknown member; its name counts as an entry, since it is kept to refuse a second one.
  private void unknown() {
    json.countEntry();
    json.skip();
  }

  /// @param digits the offset of the first digit of the checksum
  private void checkBytes(long digits) {
    byte[] zeros = Manifest.NO_CHECKSUM.getBytes(StandardCharsets.US_ASCII);
    long after = digits + zeros.length;
    int sum = bytes.crc32c(0, digits);
    sum = Crc32c.combine(sum, Crc32c.of(MemorySegment.ofArray(zeros)), zeros.length);
    sum = Crc32c.combine(sum, bytes.crc32c(after, bytes.length()), bytes.length() - after);
    if (sum != ownChecksum) {
      throw json.malformedAt(
          digits,
          "checksum-mismatch",
          String.format(
              Locale.ROOT, "the manifest has CRC32C %08x, and says %08x", sum, ownChecksum));
    }
  }

  private void checkFormat() {
    String format = string("format");
    if (!format.equals(Manifest.FORMAT)) {
      throw json.malformed("unknown-format", "'" + format + "', not '" + Manifest.FORMAT + "'");
    }
  }

  private void checkVersion() {
    long version = json.count("version");
    if (version != Manifest.VERSION) {
      throw json.malformed(
          "unknown-version", version + ", where only " + Manifest.VERSION + " is known");
    }
  }

  private void requireObject(String kind, String subject) {
    json.require(Kind.OBJECT, kind, subject);
  }

  private String string(String noun) {
    json.require(Kind.STRING, "invalid-" + noun, noun);
    return json.string();
  }

  /// Reads a metric; NaN and the infinities are strings, since JSON has no such numbers.
  private double metric() {
    String text = json.peek() == Kind.NUMBER ? json.number() : string("metric");
    try {
      return Double.parseDouble(text);
    } catch (NumberFormatException _) {
      throw json.malformed("invalid-metric", "'" + text + "' is not a number");
    }
  }

  private <V> SequencedMap<String, V> map(String subject, Supplier<V> value) {
    requireObject("not-an-object", subject);
    SequencedMap<String, V> map = new LinkedHashMap<>();
    for (boolean more = json.beginObject(); more; more = json.nextMember()) {
      String name = json.memberName();
      json.countEntry();
      if (map.putIfAbsent(name, value.get()) != null) {
        throw json.malformed("duplicate-name", "'" + name + "' occurs twice");
      }
    }
    return map;
  }

  private List<FileEntry> files() {
    json.require(Kind.ARRAY, "invalid-files", "files");
    List<FileEntry> files = new ArrayList<>();
    for (boolean more = json.beginArray(); more; more = json.nextElement()) {
      json.countEntry();
      files.add(file());
    }
    return files;
  }

  private FileEntry file() {
    requireObject("invalid-file", "a file");
    long offset = json.valueOffset();
    String name = "";
    OptionalLong size = OptionalLong.empty();
    OptionalLong sum = OptionalLong.empty();
    SequencedMap<String, Integer> tensors = new LinkedHashMap<>();
    MemberNames members = new MemberNames(json, "a file", offset);
    for (boolean more = json.beginObject(); more; more = json.nextMember()) {
      switch (members.next()) {
        case "name" -> name = fileName();
        case "size" -> size = OptionalLong.of(json.count("size"));
        case "crc32c" -> sum = OptionalLong.of(checksum());
        case "tensors" -> tensors = map("tensors", this::checksum);
        default -> unknown();
      }
    }
    if (name.isEmpty() || size.isEmpty() || sum.isEmpty()) {
      throw json.malformedAt(offset, "incomplete-file", "a file without name, size or crc32c");
    }
    return new FileEntry(name, size.getAsLong(), (int) sum.getAsLong(), tensors);
  }

  /// Reads a CRC32C as eight hexadecimal digits.
  private int checksum() {
    String text = string("checksum");
    if (!text.matches("[0-9a-f]{8}")) {
      throw json.malformed("invalid-checksum", "'" + text + "' is not 8 hexadecimal digits");
    }
    return Integer.parseUnsignedInt(text, 16);
  }

  /// Reads a file's name, and refuses a name that could mean a file outside the manifest's
  /// folder.
  private String fileName() {
    String name = string("file-name");
    if (name.contains("/")
        || name.equals(".")
        || name.equals("..")
        || !JsonMembers.isFileName(name)) {
      throw json.malformed("unsafe-file-name", "'" + name + "' cannot be a file's name here");
    }
    if (!fileNames.add(name)) {
      throw json.malformed("duplicate-file", "file '" + name + "' occurs twice");
    }
    return name;
  }
}
