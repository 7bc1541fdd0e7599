// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Session;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.WeightsCatalogue;
import dev.gantry.formats.spi.WeightsFormat;
import java.nio.ByteBuffer;
import java.util.List;

/// The format of a folder that `torch.distributed.checkpoint` writes. The folder has `.metadata`,
/// a pickle that lists the chunks of each tensor, and files of the ranks, such as `__0_0.distcp`,
/// whose items are archives that `torch.save` makes.
public final class DcpFormat implements WeightsFormat {
  static final String NAME = "DCP";
  static final String METADATA = ".metadata";
  private static final String DATA_FILE = ".distcp";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public List<String> suffixes() {
    return List.of(METADATA);
  }

  @Override
  public boolean recognises(String fileName, ByteBuffer start) {
    return fileName.endsWith(DATA_FILE)
        || (fileName.equals(METADATA)
            && start.hasRemaining()
            && start.get(start.position()) == (byte) 0x80);
  }

  @Override
  public boolean recognisesFolder(List<Location> files) {
    return files.stream().anyMatch(file -> file.fileName().equals(METADATA));
  }

  @Override
  public WeightsCatalogue open(FileBytes file) {
    if (file.file().fileName().endsWith(DATA_FILE)) {
      throw new MalformedFileException(
          file.file(),
          0,
          "one-of-a-folder",
          "the file is one of a folder of torch.distributed.checkpoint, which is read whole");
    }
    return new DcpReader(file).read();
  }

  @Override
  public WeightsCatalogue openFolder(Session session, Location folder, List<Location> files) {
    Location metadata =
        files.stream().filter(file -> file.fileName().equals(METADATA)).findFirst().orElseThrow();
    try (FileBytes file = FileBytes.open(session, metadata)) {
      return open(file);
    }
  }
}
