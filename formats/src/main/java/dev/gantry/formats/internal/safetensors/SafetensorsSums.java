// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.checksum.KnownChecksums;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.formats.internal.files.TextFile;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.regex.Pattern;

/// The checksums of a safetensors file's tensors, in a file of text beside it: `NAME.gantry-sums`.
///
/// The text has these lines: a head; the file's size and the CRC32C of its header; the CRC32C of each
/// tensor's bytes, ordered by offset, then by name; and the CRC32C of all lines before it. See
/// `docs/weights.md`.
public final class SafetensorsSums {
  private static final String SUFFIX = ".gantry-sums";
  private static final String HEAD = "gantry-sums 1\n";
  private static final long MAX_BYTES = 100_000_000;

  /// The length of a line with a checksum: eight digits and a line feed.
  private static final int SUM_LENGTH = 9;

  private static final Pattern LINES = Pattern.compile("(?:[0-9a-f]{8}\n)*+");

  private SafetensorsSums() {}

  /// The path of the checksums of a safetensors file.
  public static Path sumsFile(Path file) {
    return file.resolveSibling(file.getFileName() + SUFFIX);
  }

  /// Whether a file's name is the name of a checksum file.
  public static boolean isSums(String name) {
    return name.endsWith(SUFFIX);
  }

  /// Reads a file once, and writes its checksums beside it. They replace older checksums.
  ///
  /// @return how many tensors the file has
  /// @throws MisuseException if another file has the checksum file's name
  /// @throws MalformedFileException if the file is not a safetensors file, or changed meanwhile
  /// @throws dev.gantry.core.TransferException if a file cannot be read or written
  public static int build(GantrySession session, Path file) {
    Path target = sumsFile(file);
    if (Files.exists(target)
        && !TextFile.readIfText(session, Location.of(target), MAX_BYTES).startsWith(HEAD)) {
      throw new MisuseException(
          target + " holds no checksums of Gantry's, and is not replaced; move it away");
    }
    SourceFile.Identity before = SourceFile.Identity.look(file);
    SafetensorsHeader header = SafetensorsHeader.read(session, file);
    StringBuilder text = new StringBuilder(start(session, header));
    List<Extent> extents = header.tensors().values().stream().map(StoredTensor::extent).toList();
    for (int sum : session.checksums(extents)) {
      text.append(line(sum));
    }
    if (!SourceFile.Identity.look(file).equals(before)) {
      throw new MalformedFileException(
          file, 0, "changed-meanwhile", "the file changed while its checksums were taken");
    }
    byte[] all =
        text.append(line(crc32c(text.toString()))).toString().getBytes(StandardCharsets.UTF_8);
    var _ =
        session.write(
            List.of(new NewFile(target, List.of(new Memory.OnHost(MemorySegment.ofArray(all))))),
            WriteOptions.defaults());
    return header.tensors().size();
  }

  /// Returns the first lines, which identify the file by its size and header, but not by the tensors'
  /// values.
  private static String start(GantrySession session, SafetensorsHeader header) {
    try (FileBytes bytes = FileBytes.open(session, header.file())) {
      return HEAD + header.fileLength() + " " + line(bytes.crc32c(0, header.dataStart()));
    }
  }

  private static String line(int sum) {
    return HexFormat.of().toHexDigits(sum) + "\n";
  }

  private static int crc32c(String text) {
    return Crc32c.of(MemorySegment.ofArray(text.getBytes(StandardCharsets.UTF_8)));
  }

  /// Whether each data file of the weights has a checksum file beside it.
  public static boolean areThere(WeightsCatalogue weights) {
    return weights.format().equals(SafetensorsFormat.NAME)
        && weights.files().stream()
            .allMatch(file ->
                file instanceof Location.Local(Path path, _) && Files.exists(sumsFile(path)));
  }

  /// Reads the checksums of all data files of some weights from the files beside them.
  ///
  /// @throws MisuseException if the weights are no local safetensors, or a file has no checksums
  /// @throws MalformedFileException if the checksums are damaged, or of kind `stale-sums` if the data file
  ///     has changed since
  public static List<KnownChecksums.Known> of(GantrySession session, WeightsCatalogue weights) {
    if (!weights.format().equals(SafetensorsFormat.NAME)) {
      throw new MisuseException(
          "loads of " + weights.format() + " cannot be verified: the format has no checksums");
    }
    List<KnownChecksums.Known> all = new ArrayList<>();
    for (Location file : weights.files()) {
      switch (file) {
        case Location.Local(Path path, _) -> all.addAll(read(session, path, file));
        case Location.Remote _ ->
            throw new MisuseException(file + " is remote: loads of local files can be verified");
      }
    }
    return all;
  }

  /// @param location the file as loads name it
  private static List<KnownChecksums.Known> read(
      GantrySession session, Path file, Location location) {
    Path sums = sumsFile(file);
    if (!Files.exists(sums)) {
      throw new MisuseException(
          "%s does not exist, and a verified load needs it; `gantry index %s` makes it"
              .formatted(sums, file));
    }
    String text = TextFile.read(session, Location.of(sums), MAX_BYTES);
    if (!text.startsWith(HEAD)) {
      throw new MalformedFileException(
          sums,
          0,
          "not-sums",
          "the file has no checksums of a safetensors file, or is of another version");
    }
    SafetensorsHeader header = SafetensorsHeader.read(session, file);
    String start = start(session, header);
    if (!text.startsWith(start)) {
      throw new MalformedFileException(
          sums,
          0,
          "stale-sums",
          "the checksums are of another "
              + file.getFileName()
              + ", with another size or header; `gantry index` makes them anew");
    }
    int end = start.length() + SUM_LENGTH * header.tensors().size();
    if (text.length() < end
        || !text.substring(end).equals(line(crc32c(text.substring(0, end))))
        || !LINES.matcher(text.substring(start.length(), end)).matches()) {
      throw new MalformedFileException(sums, 0, "checksum-mismatch", "the checksums are damaged");
    }
    Iterator<String> values = text.substring(start.length(), end).lines().iterator();
    List<KnownChecksums.Known> known = new ArrayList<>();
    for (StoredTensor tensor : header.tensors().values()) {
      known.add(
          new KnownChecksums.Known(
              new Extent(location, tensor.extent().offset(), tensor.extent().length()),
              "tensor '" + tensor.name() + "'",
              HexFormat.fromHexDigits(values.next())));
    }
    return known;
  }
}
