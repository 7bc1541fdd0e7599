// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import dev.gantry.benchmarks.CrtClient.Item;
import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.benchmarks.harness.Folders;
import dev.gantry.benchmarks.harness.LinkServer;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.transport.TransferOptions;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// Compares downloads of the same objects, in turns: by the CRT client alone to direct memory, and
/// by Gantry to host memory and to a GPU. Both clients get parts of 8 MiB and have a pool of
/// direct buffers.
///
/// `S3Bench s3://bucket/folder/ [ROUNDS]` reads `AWS_ENDPOINT_URL_S3` (path style), `AWS_REGION`
/// and keys from the environment. The JVM needs `-Xmx64m -XX:MaxDirectMemorySize=4g`; each client
/// may use half of the direct memory.
///
/// `S3Bench loopback [ROUNDS] [GB]` starts a server that answers after 30 ms and limits each
/// connection to 100 MB/s. Gantry then also reads by HTTP, and from a hub into an empty cache
/// folder. The objects and the cache folder lie in `/dev/shm`, or in the folder of
/// `-Dbench.folder`.
public final class S3Bench {
  private static final long DELAY_MILLIS = 30;
  private static final long CONNECTION_BYTES_PER_SECOND = 100_000_000;
  private static final int OBJECTS = 4;

  /// How many repositories were loaded from the hub; each load gets a repository of its own.
  private static int repositories;

  private S3Bench() {}

  /// @param arguments a folder or `loopback`, the number of rounds, and the gigabytes of all
  ///     objects of the loopback
  public static void main(String[] arguments) throws Exception {
    int rounds = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 5;
    if (!arguments[0].equals("loopback")) {
      try (GantrySession session = GantrySession.open()) {
        Location.Remote folder = (Location.Remote) Location.of(arguments[0]);
        compare(session, items(session, session.list(folder).orElseThrow()), List.of(), rounds);
      }
      return;
    }
    double gigabytes = arguments.length > 2 ? Double.parseDouble(arguments[2]) : 1;
    Path folder =
        Files.createTempDirectory(Path.of(System.getProperty("bench.folder", "/dev/shm")), "link");
    try {
      compareOverLink(folder, (long) (gigabytes * 1e9 / OBJECTS), rounds);
    } finally {
      Folders.remove(folder);
    }
  }

  private static void compareOverLink(Path folder, long objectBytes, int rounds) throws Exception {
    Path file = folder.resolve("object");
    write(file, objectBytes);
    try (LinkServer server = LinkServer.start(file, DELAY_MILLIS, CONNECTION_BYTES_PER_SECOND)) {
      Map.of(
              "aws.endpointUrlS3",
              server.address(),
              "aws.region",
              "us-east-1",
              "aws.accessKeyId",
              "any",
              "aws.secretAccessKey",
              "any",
              "HF_ENDPOINT",
              server.address(),
              "HF_HUB_CACHE",
              folder.resolve("hub").toString())
          .forEach(System::setProperty);
      try (GantrySession session = GantrySession.open()) {
        compare(
            session,
            items(session, names("s3://bucket/")),
            items(session, names(server.address() + "/bucket/")),
            rounds);
        compareUploads(session, file, rounds);
      }
    }
  }

  private static void write(Path file, long bytes) throws IOException {
    byte[] piece = new byte[1 << 20];
    new Random(1).nextBytes(piece);
    try (OutputStream out = Files.newOutputStream(file)) {
      for (long left = bytes; left > 0; left -= piece.length) {
        out.write(piece, 0, (int) Math.min(left, piece.length));
      }
    }
  }

  private static List<Location> names(String folder) {
    return IntStream.range(0, OBJECTS).mapToObj(i -> Location.of(folder + "object-" + i)).toList();
  }

  private static List<Item> items(GantrySession session, List<Location> files) {
    List<Item> items = new ArrayList<>();
    for (Location file : files) {
      try (SourceFile open = session.openFile(file)) {
        items.add(new Item((Location.Remote) file, open.size()));
      }
    }
    return items;
  }

  private static void compare(
      GantrySession session, List<Item> objects, List<Item> files, int rounds) throws Exception {
    try (CrtClient alone = new CrtClient()) {
      Comparison all =
          new Comparison(objects.size() + " objects", objects.stream().mapToLong(Item::bytes).sum())
              .samples(objects.size())
              .add("CRT alone", () -> alone.download(objects));
      List<Device> devices = new ArrayList<>(List.of(Device.HOST));
      if (CudaDriver.load() instanceof Availability.Present<CudaDriver>(CudaDriver driver)
          && driver.deviceCount() > 0) {
        devices.add(new Device.Cuda(0));
      }
      for (Device device : devices) {
        all.add("Gantry, s3 to " + device, () -> load(session, objects, device));
        if (!files.isEmpty()) {
          all.add("Gantry, http to " + device, () -> load(session, files, device));
          all.addTimed("Gantry, hub to " + device, () -> loadFromHub(session, files, device));
        }
      }
      all.print(rounds);
    }
  }

  /// Loads objects of a new repository, of which the cache folder has no files. The clock is
  /// stopped while the files are published in the cache and removed.
  private static double loadFromHub(GantrySession session, List<Item> files, Device device)
      throws Exception {
    repositories++;
    List<Item> items = new ArrayList<>();
    for (int i = 0; i < files.size(); i++) {
      Location name = Location.of("hf://bench/turn-" + repositories + "/object-" + i);
      items.add(new Item((Location.Remote) name, files.get(i).bytes()));
    }
    double seconds = Contender.seconds(() -> load(session, items, device));
    Path cache = Path.of(System.getProperty("HF_HUB_CACHE"));
    Path repository = cache.resolve("models--bench--turn-" + repositories);
    while (isComing(repository.resolve("blobs"))) {
      TimeUnit.MILLISECONDS.sleep(10);
    }
    Folders.remove(repository);
    return seconds;
  }

  private static boolean isComing(Path blobs) throws IOException {
    try (Stream<Path> files = Files.list(blobs)) {
      return files.anyMatch(file -> file.toString().contains(".incomplete"));
    }
  }

  private static void compareUploads(GantrySession session, Path file, int rounds)
      throws Exception {
    Location.Remote target = (Location.Remote) Location.of("s3://bucket/uploaded");
    try (CrtClient alone = new CrtClient()) {
      new Comparison("an upload", Files.size(file))
          .samples(1)
          .add("CRT alone", () -> alone.upload(file, target))
          .add("Gantry", () -> session.writable(target).upload(file, target))
          .print(rounds);
    }
  }

  private static void load(GantrySession session, List<Item> items, Device device) {
    List<ExtentRequest> wanted =
        items.stream()
            .map(item -> new ExtentRequest(new Extent(item.location(), 0, item.bytes()), 1))
            .toList();
    session.load(wanted, device, TransferOptions.defaults()).close();
  }
}
