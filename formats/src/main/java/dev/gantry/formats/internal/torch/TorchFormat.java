// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Session;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.archive.ZipDirectory;
import dev.gantry.formats.internal.files.Folder;
import dev.gantry.formats.internal.files.OtherFormats;
import dev.gantry.formats.internal.safetensors.DataFiles;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.WeightsCatalogue;
import dev.gantry.formats.spi.WeightsFormat;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/// The format that `torch.save` writes: a file of nested dictionaries and lists of tensors, or a
/// folder of such files. A folder of several files has an index.
public final class TorchFormat implements WeightsFormat {
  private static final String NAME = "PyTorch";
  private static final String DATA_FILE = ".bin";
  private static final List<String> SUFFIXES = List.of(".pt", ".pth", ".ckpt");
  private static final DataFiles DATA_FILES =
      new DataFiles(NAME, "pytorch_model", DATA_FILE, TorchFormat::read);

  /// Matches the names of a model's only file and of its numbered files.
  private static final Pattern OF_A_MODEL =
      Pattern.compile("pytorch_model\\.bin|.*-[0-9]{5}-of-[0-9]{5}\\.bin", Pattern.DOTALL);

  /// The files that trainers save beside a model, which hold no weights of the model.
  private static final Set<String> BESIDE =
      Set.of("optimizer.pt", "scheduler.pt", "scaler.pt", "rng_state.pth");

  private static final Pattern BESIDE_OF_RANKS = Pattern.compile("rng_state_[0-9]+\\.pth");

  /// How many of a file's first bytes are needed to recognise a legacy file.
  private static final int START_BYTES = 32;

  @Override
  public String name() {
    return NAME;
  }

  /// The suffix `.bin` is left out, since many programs use it for other files.
  @Override
  public List<String> suffixes() {
    return Stream.concat(Stream.of(DATA_FILES.indexSuffix()), SUFFIXES.stream()).toList();
  }

  @Override
  public boolean recognises(String fileName, ByteBuffer start) {
    return LegacyFile.begins(start)
        || (ZipDirectory.begins(start)
            && (hasSuffix(fileName) || TorchArchive.hasFirstName(ZipDirectory.firstName(start))));
  }

  private static boolean hasSuffix(String fileName) {
    return SUFFIXES.stream().anyMatch(fileName.toLowerCase(Locale.ROOT)::endsWith);
  }

  @Override
  public boolean recognisesFolder(List<Location> files) {
    return files.stream().anyMatch(TorchFormat::isOfFolder);
  }

  /// Whether a file's name says that the file holds weights.
  private static boolean isOfFolder(Location file) {
    String name = file.fileName();
    return isPart(name)
        || (name.endsWith(DATA_FILE) && name.contains("model"))
        || (hasSuffix(name) && !BESIDE.contains(name) && !BESIDE_OF_RANKS.matcher(name).matches());
  }

  /// Whether a file is an index, or a data file that an index may name.
  private static boolean isPart(String name) {
    return name.endsWith(DATA_FILES.indexSuffix()) || OF_A_MODEL.matcher(name).matches();
  }

  @Override
  public WeightsCatalogue open(FileBytes file) {
    return DATA_FILES.open(file);
  }

  private static WeightsCatalogue read(FileBytes file) {
    ByteBuffer start = ByteBuffer.allocate((int) Math.min(START_BYTES, file.length()));
    file.readFully(start, 0);
    start.flip();
    if (LegacyFile.begins(start)) {
      return catalogue(file, new LegacyFile(file).read(start), List.of());
    }
    if (!ZipDirectory.begins(start)) {
      OtherFormats.refuse(file, NAME);
      throw new MalformedFileException(
          file.file(),
          0,
          "not-pytorch",
          "the file begins neither as a ZIP archive nor with PyTorch's magic number, as torch.save"
              + " has written them since version 0.2");
    }
    TorchArchive archive = new TorchArchive(file, new Extent(file.file(), 0, file.length()));
    StateDict tensors = archive.read();
    return catalogue(file, tensors, archive.checksums());
  }

  private static WeightsCatalogue catalogue(
      FileBytes file, StateDict found, List<WeightsCatalogue.Checksum> checksums) {
    return new WeightsCatalogue(
        NAME, List.of(file.file()), found.tensors().values(), found.notes(), checksums);
  }

  /// Opens `pytorch_model.bin`, the data files of an index, numbered data files, or the only file.
  @Override
  public WeightsCatalogue openFolder(Session session, Location folder, List<Location> files) {
    GantrySession own = GantrySession.of(session);
    List<Location> parts = files.stream().filter(file -> isPart(file.fileName())).toList();
    if (!parts.isEmpty()) {
      return DATA_FILES.openFolder(new Folder(own, folder, parts));
    }
    List<Location> others = files.stream().filter(TorchFormat::isOfFolder).toList();
    if (others.size() != 1) {
      throw new MalformedFileException(
          folder,
          0,
          "several-files",
          "%s files of tensors and none is pytorch_model.bin; open one of them by its name"
              .formatted(others.size()));
    }
    try (FileBytes file = FileBytes.open(session, others.getFirst())) {
      return read(file);
    }
  }
}
