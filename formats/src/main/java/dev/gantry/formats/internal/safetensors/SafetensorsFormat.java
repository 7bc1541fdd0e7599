// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.Location;
import dev.gantry.core.Session;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.files.Folder;
import dev.gantry.formats.internal.files.OtherFormats;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.WeightsCatalogue;
import dev.gantry.formats.spi.WeightsFormat;
import java.nio.ByteBuffer;
import java.util.List;

/// The safetensors format: a file, an index with its data files, or a folder of them.
public final class SafetensorsFormat implements WeightsFormat {
  static final String NAME = "safetensors";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public List<String> suffixes() {
    return List.of(SafetensorsOpener.FILE_SUFFIX, ".json");
  }

  @Override
  public boolean recognises(String fileName, ByteBuffer start) {
    return OtherFormats.isSafetensors(start);
  }

  @Override
  public boolean recognisesFolder(List<Location> files) {
    return SafetensorsOpener.DATA_FILES.isAmong(files);
  }

  @Override
  public WeightsCatalogue open(FileBytes file) {
    return SafetensorsOpener.DATA_FILES.open(file);
  }

  @Override
  public WeightsCatalogue openFolder(Session session, Location folder, List<Location> files) {
    return SafetensorsOpener.DATA_FILES.openFolder(
        new Folder(GantrySession.of(session), folder, files));
  }
}
