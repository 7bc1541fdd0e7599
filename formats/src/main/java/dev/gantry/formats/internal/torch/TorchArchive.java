// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import dev.gantry.core.Extent;
import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.internal.archive.ZipDirectory;
import dev.gantry.formats.internal.archive.ZipMember;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;

/// Reads the files that `torch.save` has written since PyTorch 1.6: ZIP archives whose members
/// are one pickle and the storages. Tensors in stored members are loaded straight from the
/// archive.
final class TorchArchive {
  private static final String PICKLE = "data.pkl";
  private static final String BYTE_ORDER = "byteorder";

  private final FileBytes bytes;
  private final Extent archive;

  /// The members, by their names within the archive's top folder.
  private final Map<String, ZipMember> members = new HashMap<>();

  private final SequencedMap<String, WeightsCatalogue.Checksum> checksums = new LinkedHashMap<>();

  /// @param archive the extent of the whole archive in the file
  TorchArchive(FileBytes bytes, Extent archive) {
    this.bytes = bytes;
    this.archive = archive;
    List<ZipMember> all = ZipDirectory.read(bytes, archive);
    String folder = all.isEmpty() ? "" : folder(all.getFirst().name());
    for (ZipMember member : all) {
      if (member.name().startsWith(folder)
          && members.put(member.name().substring(folder.length()), member) != null) {
        throw malformed(
            member.extent().offset() - archive.offset(),
            "duplicate-member",
            member.subject() + " occurs twice");
      }
    }
  }

  private static String folder(String member) {
    return member.substring(0, member.indexOf('/') + 1);
  }

  /// Whether PyTorch gives this name to an archive's first member.
  static boolean hasFirstName(String name) {
    String inFolder = name.substring(folder(name).length());
    return name.indexOf('/') >= 0
        && (inFolder.equals(PICKLE)
            || inFolder.equals(BYTE_ORDER)
            || inFolder.equals("constants.pkl")
            || inFolder.equals("version")
            || inFolder.startsWith(".")
            || inFolder.startsWith("data/")
            || inFolder.startsWith("code/"));
  }

  /// Reads the pickle, and finds the tensors in it.
  StateDict read() {
    ZipMember pickle = members.get(PICKLE);
    if (pickle == null) {
      throw malformed(
          0, "no-pickle", "the archive has no " + PICKLE + ": PyTorch did not write it");
    }
    if (members.containsKey("constants.pkl")) {
      throw malformed(
          pickle.extent().offset() - archive.offset(),
          "torchscript",
          "the archive is a TorchScript program, not tensors alone; save its state_dict()");
    }
    ByteOrder order = order();
    TorchTensors tensors = new TorchTensors(bytes.file(), (key, _) -> storage(key, order));
    return new StateDict(bytes.file(), pickle.extent().offset(), tensors).add(value(pickle));
  }

  /// Reads the pickle as a note. The result is empty if the value is not a number, a string, a
  /// truth value or a short list of these, or if Python would need a class for it.
  Optional<String> note() {
    ZipMember pickle = members.get(PICKLE);
    try {
      return Optional.ofNullable(pickle).map(this::value).map(StateDict::note);
    } catch (MalformedFileException fault) {
      if (fault.kind().equals(PickleReader.UNSAFE)) {
        return Optional.empty();
      }
      throw fault;
    }
  }

  private PickleValue value(ZipMember pickle) {
    try (PickleInput input = PickleInput.of(bytes, pickle)) {
      return new PickleReader(input, TorchTypes::isKnown).read();
    }
  }

  /// The checksums of the storages that [#read] has found. PyTorch writes 0 if it was told to
  /// compute no checksums.
  List<WeightsCatalogue.Checksum> checksums() {
    return List.copyOf(checksums.values());
  }

  private Optional<TorchStorage> storage(String key, ByteOrder order) {
    ZipMember member = members.get("data/" + key);
    if (member != null && !member.isDeflated() && member.crc32() != 0) {
      checksums.putIfAbsent(key, member.checksum());
    }
    return Optional.ofNullable(member).map(found -> TorchStorage.of(found, order));
  }

  private ByteOrder order() {
    ZipMember member = members.get(BYTE_ORDER);
    if (member == null) {
      return ByteOrder.LITTLE_ENDIAN;
    }
    String order;
    try (PickleInput text = PickleInput.of(bytes, member)) {
      order = new String(text.bytes(Math.min(16, member.size())), StandardCharsets.ISO_8859_1);
    }
    return switch (order) {
      case "little" -> ByteOrder.LITTLE_ENDIAN;
      case "big" -> ByteOrder.BIG_ENDIAN;
      default ->
          throw malformed(
              member.extent().offset() - archive.offset(),
              "unknown-byte-order",
              "the byte order is '" + order + "', neither little nor big");
    };
  }

  /// @param offset the fault's offset from the start of the archive
  private MalformedFileException malformed(long offset, String kind, String detail) {
    return new MalformedFileException(bytes.file(), archive.offset() + offset, kind, detail);
  }
}
