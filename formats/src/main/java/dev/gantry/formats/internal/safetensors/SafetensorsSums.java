// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.DType;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.checksum.KnownChecksums;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;

/// The checksums of a safetensors file's tensors, in a file beside it: `NAME.gantry-sums`.
///
/// That is a safetensors file, too. Its tensor `crc32c`, U32, has the CRC32C of each tensor's bytes, in
/// the order of offsets, then of names. Its notes say of which file they are: its size, and the CRC32C
/// of all that comes before its tensors. See `docs/weights.md`.
public final class SafetensorsSums {
  private static final String SUFFIX = ".gantry-sums";
  private static final String FORMAT = "format";
  private static final String VERSION = "version";
  private static final String FILE_SIZE = "file_size";
  private static final String HEADER_SUM = "header_crc32c";
  private static final String OWN_SUM = "sums_crc32c";
  private static final String OURS = "gantry-sums";
  private static final String CURRENT = "1";
  private static final String SUMS = "crc32c";

  private SafetensorsSums() {}

  /// The file of a file's checksums.
  public static Path sumsFile(Path file) {
    return file.resolveSibling(file.getFileName() + SUFFIX);
  }

  /// Whether a file holds checksums, by its name.
  public static boolean isSums(String name) {
    return name.endsWith(SUFFIX);
  }

  /// Reads a file once, and writes its checksums beside it. Older ones are replaced.
  ///
  /// @return how many tensors it has
  /// @throws MisuseException if another file has their name
  /// @throws MalformedFileException if the file is no safetensors, or changed meanwhile
  /// @throws dev.gantry.core.TransferException if a file cannot be read or written
  public static int build(GantrySession session, Path file) {
    Path target = sumsFile(file);
    requireOurs(session, target);
    SourceFile.Identity before = SourceFile.Identity.look(file);
    SafetensorsHeader header = SafetensorsHeader.read(session, file);
    ByteBuffer sums =
        ByteBuffer.allocate(Integer.BYTES * header.tensors().size()).order(ByteOrder.LITTLE_ENDIAN);
    List<Extent> extents = header.tensors().values().stream().map(StoredTensor::extent).toList();
    for (int sum : session.checksums(extents)) {
      sums.putInt(sum);
    }
    Map<String, String> notes = notes(session, header);
    if (!SourceFile.Identity.look(file).equals(before)) {
      throw new MalformedFileException(
          file, 0, "changed-meanwhile", "the file changed while its checksums were taken");
    }
    MemorySegment bytes = MemorySegment.ofArray(sums.array());
    notes.put(OWN_SUM, digits(Crc32c.of(bytes)));
    NewTensor tensor =
        new NewTensor(
            SUMS, DType.U32, TensorShape.of(header.tensors().size()), new Memory.OnHost(bytes));
    // Written without a safetensors output, whose checks would look at the other safetensors files
    // of this folder.
    session.write(
        NewSafetensors.file(target, List.of(tensor), notes).files(),
        WriteOptions.defaults().withChecksums(false));
    return header.tensors().size();
  }

  private static void requireOurs(GantrySession session, Path target) {
    if (!Files.exists(target)) {
      return;
    }
    boolean ours;
    try {
      ours = OURS.equals(SafetensorsHeader.read(session, target).metadata().get(FORMAT));
    } catch (MalformedFileException _) {
      ours = false;
    }
    if (!ours) {
      throw new MisuseException(
          target + " holds no checksums of Gantry's, and is not replaced; move it away");
    }
  }

  /// What tells a file from others of its name, but not the tensors' values.
  private static Map<String, String> notes(GantrySession session, SafetensorsHeader header) {
    try (FileBytes bytes = FileBytes.open(session, header.file())) {
      return new HashMap<>(
          Map.of(
              FORMAT,
              OURS,
              VERSION,
              CURRENT,
              FILE_SIZE,
              Long.toString(header.fileLength()),
              HEADER_SUM,
              digits(bytes.crc32c(0, header.dataStart()))));
    }
  }

  private static String digits(int sum) {
    return String.format(Locale.ROOT, "%08x", sum);
  }

  /// The checksums of all data files of some weights, as the files beside them have them.
  ///
  /// @throws MisuseException if the weights are no local safetensors, or a file has no checksums
  /// @throws MalformedFileException if these are damaged, or of kind `stale-sums` if they are of
  ///     another file
  public static List<KnownChecksums.Known> of(GantrySession session, WeightsCatalogue weights) {
    if (!weights.format().equals(SafetensorsFormat.NAME)) {
      throw new MisuseException(
          "loads of " + weights.format() + " cannot be verified; those of safetensors can");
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
          sums
              + " is not there, which a verified load needs; `gantry index "
              + file
              + "` makes it");
    }
    SafetensorsHeader found = SafetensorsHeader.read(session, sums);
    if (!OURS.equals(found.metadata().get(FORMAT))
        || !CURRENT.equals(found.metadata().get(VERSION))) {
      throw new MalformedFileException(
          sums, 0, "not-sums", "no checksums of a safetensors file, or of another version");
    }
    SafetensorsHeader header = SafetensorsHeader.read(session, file);
    Map<String, String> expected = notes(session, header);
    for (String note : List.of(FILE_SIZE, HEADER_SUM)) {
      if (!Objects.equals(expected.get(note), found.metadata().get(note))) {
        throw new MalformedFileException(
            sums,
            0,
            "stale-sums",
            "they are of another "
                + file.getFileName()
                + ": "
                + note
                + " is "
                + expected.get(note)
                + ", not "
                + found.metadata().get(note)
                + "; `gantry index` makes them anew");
      }
    }
    return known(header, location, values(session, sums, found, header.tensors().size()));
  }

  private static ByteBuffer values(
      GantrySession session, Path sums, SafetensorsHeader found, int tensors) {
    StoredTensor stored = found.tensors().get(SUMS);
    if (stored == null
        || stored.dtype() != DType.U32
        || !stored.shape().equals(TensorShape.of(tensors))) {
      throw new MalformedFileException(
          sums, 0, "not-sums", "no tensor '" + SUMS + "' of " + tensors + " checksums");
    }
    ByteBuffer values = ByteBuffer.allocate(Math.toIntExact(stored.bytes()));
    try (FileBytes bytes = FileBytes.open(session, sums)) {
      bytes.readFully(values, stored.extent().offset());
    }
    int sum = Crc32c.of(MemorySegment.ofArray(values.array()));
    if (!digits(sum).equals(found.metadata().get(OWN_SUM))) {
      throw new MalformedFileException(
          sums, stored.extent().offset(), "checksum-mismatch", "the checksums are damaged");
    }
    return values.clear().order(ByteOrder.LITTLE_ENDIAN);
  }

  private static List<KnownChecksums.Known> known(
      SafetensorsHeader header, Location location, ByteBuffer values) {
    List<KnownChecksums.Known> known = new ArrayList<>();
    for (StoredTensor tensor : header.tensors().values()) {
      known.add(
          new KnownChecksums.Known(
              new Extent(location, tensor.extent().offset(), tensor.extent().length()),
              "tensor '" + tensor.name() + "'",
              values.getInt()));
    }
    return known;
  }
}
