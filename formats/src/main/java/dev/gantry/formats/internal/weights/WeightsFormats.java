// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.weights;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.Services;
import dev.gantry.core.internal.threads.Preparations;
import dev.gantry.formats.internal.files.Folder;
import dev.gantry.formats.internal.files.OtherFormats;
import dev.gantry.formats.internal.json.JsonReader;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.WeightsCatalogue;
import dev.gantry.formats.spi.WeightsFormat;
import java.nio.ByteBuffer;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// The registered weights formats; finds the format of a file.
public final class WeightsFormats {
  /// The kind of the error for a folder that no format recognises.
  public static final String NO_WEIGHTS = "no-weights";

  /// How many of a file's first bytes a format sees.
  private static final int START_BYTES = 512;

  private static volatile @Nullable List<WeightsFormat> all;

  private WeightsFormats() {}

  /// Returns the formats in the order of their registration.
  ///
  /// @throws dev.gantry.core.MisuseException if a registered class is wrong
  public static List<WeightsFormat> all() {
    List<WeightsFormat> found = all;
    if (found == null) {
      found = Services.find(WeightsFormat.class);
      all = found;
    }
    return found;
  }

  /// Opens a file or folder of weights of any registered format.
  ///
  /// @throws MalformedFileException if a file breaks a rule of its format; of kind
  ///     `another-format` or `unknown-format` if no format recognises the file; of kind
  ///     `no-weights` if no format recognises the folder
  /// @throws dev.gantry.core.TransferException if a file or folder cannot be opened or read
  public static WeightsCatalogue open(GantrySession session, Location location) {
    // Most formats have a header or an index of JSON. Jackson's classes load while this thread
    // links the C library.
    Preparations.beginOnce("gantry-prepare-json", JsonReader::loadClasses);
    return look(
        session,
        location,
        file -> formatOf(location, file).open(file),
        folder -> ofFolder(folder).openFolder(session, folder.location(), folder.files()));
  }

  /// Finds the format of a file or folder of weights; throws as [#open] does.
  public static WeightsFormat formatOf(GantrySession session, Location location) {
    return look(session, location, file -> formatOf(location, file), WeightsFormats::ofFolder);
  }

  private static <T> T look(
      GantrySession session,
      Location location,
      Function<FileBytes, T> ofFile,
      Function<Folder, T> ofFolder) {
    Optional<Folder> folder = Folder.at(session, location);
    if (folder.isPresent()) {
      return ofFolder.apply(folder.get());
    }
    FileBytes opened;
    try {
      opened = FileBytes.open(session, location);
    } catch (TransferException e) {
      return ofFolder.apply(Folder.insteadOf(session, location, e).orElseThrow(() -> e));
    }
    try (opened) {
      return ofFile.apply(opened);
    }
  }

  private static WeightsFormat ofFolder(Folder folder) {
    return all().stream()
        .filter(format -> format.recognisesFolder(folder.files()))
        .findFirst()
        .orElseThrow(() ->
            new MalformedFileException(
                folder.location(),
                0,
                NO_WEIGHTS,
                "the folder has no weights, such as " + suffixes() + OtherFormats.instead(folder)));
  }

  private static WeightsFormat formatOf(Location location, FileBytes file) {
    String name = location.fileName();
    return recognised(name, start(file))
        .or(() -> {
          OtherFormats.describe(file)
              .ifPresent(what -> {
                throw new MalformedFileException(
                    location, 0, "another-format", "the file is " + what);
              });
          return named(name);
        })
        .orElseThrow(() -> {
          OtherFormats.refuseEmpty(file);
          return new MalformedFileException(
              location,
              0,
              "unknown-format",
              "the file does not begin as any of %s does, and its name does not end in any of %s"
                  .formatted(names(), suffixes()));
        });
  }

  /// The format that recognises a file's first bytes.
  ///
  /// @param start the first bytes, as [WeightsFormat#recognises] takes them
  private static Optional<WeightsFormat> recognised(String name, ByteBuffer start) {
    return all().stream()
        .filter(format -> format.recognises(name, start.asReadOnlyBuffer()))
        .findFirst();
  }

  /// Finds the format by the suffix of a file's name, the longest if several fit.
  private static Optional<WeightsFormat> named(String name) {
    String lower = name.toLowerCase(Locale.ROOT);
    return all().stream()
        .filter(format -> suffixLength(format, lower) > 0)
        .max(Comparator.comparingInt(format -> suffixLength(format, lower)));
  }

  private static int suffixLength(WeightsFormat format, String name) {
    return format.suffixes().stream()
        .filter(name::endsWith)
        .mapToInt(String::length)
        .max()
        .orElse(0);
  }

  private static ByteBuffer start(FileBytes bytes) {
    ByteBuffer start = ByteBuffer.allocate((int) Math.min(START_BYTES, bytes.length()));
    bytes.readFully(start, 0);
    return start.flip();
  }

  private static String names() {
    return all().stream().map(WeightsFormat::name).collect(Collectors.joining(", "));
  }

  private static String suffixes() {
    return all().stream()
        .flatMap(format -> format.suffixes().stream())
        .collect(Collectors.joining(", "));
  }
}
