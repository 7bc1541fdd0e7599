// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.spi.WritableStore;
import dev.gantry.formats.internal.files.Folder;
import dev.gantry.formats.internal.files.TextFile;
import dev.gantry.formats.internal.files.UploadFolder;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/// The file `gantry-upload` in a folder of another store. It names the files of an upload while
/// the upload runs, so it shows which files a killed upload has left. The upload that began last
/// owns the folder: an earlier upload reads this file before each of its files, and fails.
final class UnfinishedUpload {
  private static final String NAME = "gantry-upload";
  private static final int MAX_BYTES = 10 << 20;
  private static final Pattern LINE = Pattern.compile("([0-9]{1,18}) ([^/]+)");

  private final GantrySession session;
  private final WritableStore store;
  private final Location.Remote folder;
  private final String id = UUID.randomUUID().toString();

  UnfinishedUpload(GantrySession session, WritableStore store, Location.Remote folder) {
    this.session = session;
    this.store = store;
    this.folder = folder;
  }

  private Location file() {
    return Folder.child(folder, NAME);
  }

  /// Finds which of a folder's files an interrupted upload has left.
  Predicate<WritableStore.Entry> leftovers(List<WritableStore.Entry> there) {
    if (there.stream().noneMatch(file -> file.name().equals(NAME))) {
      return _ -> false;
    }
    Map<String, Long> sizes = new HashMap<>();
    for (String line : text().lines().skip(1).toList()) {
      Matcher parts = LINE.matcher(line);
      if (parts.matches()) {
        sizes.put(parts.group(2), Long.parseLong(parts.group(1)));
      }
    }
    // This also ends multipart uploads of which the store has some parts, but no file yet.
    store.endUploads(folder, sizes::containsKey);
    return file -> Long.valueOf(file.size()).equals(sizes.get(file.name()));
  }

  private String text() {
    return TextFile.readIfText(session, file(), MAX_BYTES);
  }

  /// Begins an upload of files.
  void begin(UploadFolder temporary, List<NewFile> files) {
    String text =
        files.stream()
            .map(made -> made.size() + " " + made.file().getFileName() + "\n")
            .collect(Collectors.joining("", id + "\n", ""));
    MemorySegment bytes = MemorySegment.ofArray(text.getBytes(StandardCharsets.UTF_8));
    NewFile made = new NewFile(temporary.file(NAME), List.of(new Memory.OnHost(bytes)));
    var _ = session.write(List.of(made), WriteOptions.defaults());
    store.upload(made.file(), file());
  }

  /// @throws TransferException if another upload has begun in the folder
  void requireOurs() {
    if (!text().startsWith(id)) {
      throw new TransferException(
          "upload",
          folder.toString(),
          new Failure.Remote(0, "another upload has taken this folder"));
    }
  }

  /// Ends the upload, after its files are complete or removed.
  void end() {
    store.remove(file());
  }
}
