// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.benchmarks.harness.RandomCheckpoint;
import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.TransferReport.FileReport;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.store.PageCache;
import dev.gantry.core.internal.transport.TransferOptions;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;

/// Measures how fast remote files load: without a cache, while a cache is filled, and from the cache, in
/// turns with the same files read locally. `CacheBench FOLDER FILES MIB`.
///
/// The server runs in this process, on the loopback. Cold means that the files were dropped from the page
/// cache.
public final class CacheBench {
  private static final int TURNS = 11;
  private static final int THREADS = 32;

  private final Path folder;
  private final List<Path> files = new ArrayList<>();
  private final AtomicLong sent = new AtomicLong();

  private CacheBench(Path folder) {
    this.folder = folder;
  }

  static void main(String[] arguments) throws Exception {
    new CacheBench(Path.of(arguments[0]))
        .run(Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]));
  }

  private void run(int count, int mebibytes) throws Exception {
    Files.createDirectories(folder.resolve("files"));
    for (int i = 0; i < count; i++) {
      Path file = folder.resolve("files").resolve("file" + i);
      var _ = RandomCheckpoint.make(file, (long) mebibytes << 20, 1, "F32");
      files.add(file);
    }
    HttpServer server =
        HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    try (ExecutorService threads = Executors.newFixedThreadPool(THREADS)) {
      server.setExecutor(threads);
      server.createContext("/", this::serve);
      server.start();
      measure(server.getAddress().getPort());
      server.stop(0);
    }
  }

  private void measure(int port) throws Exception {
    List<Location> local = files.stream().map(Location::of).toList();
    List<Location> remote =
        files.stream()
            .map(file -> Location.of("http://127.0.0.1:" + port + "/" + file.getFileName()))
            .toList();
    long bytes = 0;
    for (Path file : files) {
      bytes += Files.size(file);
    }
    try (GantrySession plain = GantrySession.open();
        GantrySession cached = GantrySession.open()) {
      System.out.printf("remote, no cache: %.2f GB/s%n", bytes / 1e9 / load(plain, remote));
      Path cache = folder.resolve("cache");
      cached.cacheRemoteFiles(cache, Long.MAX_VALUE);
      System.out.printf("remote, fills the cache: %.2f GB/s%n", bytes / 1e9 / load(cached, remote));
      long before = sent.get();
      for (boolean cold : new boolean[] {false, true}) {
        new Comparison(cold ? "files, cold" : "files, hot", bytes)
            .samples(files.size())
            .before(() -> prepare(cold, cache))
            .addTimed("local", () -> load(plain, local))
            .addTimed("cache", () -> load(cached, remote))
            .print(TURNS);
      }
      System.out.printf(
          "bytes that the server sent after the first epoch: %d%n", sent.get() - before);
    }
  }

  private void prepare(boolean cold, Path cache) throws IOException {
    List<Path> all = new ArrayList<>(files);
    try (Stream<Path> data = Files.list(cache)) {
      all.addAll(data.filter(file -> file.toString().endsWith(".data")).toList());
    }
    for (Path file : all) {
      if (cold) {
        long _ = PageCache.drop(file);
      } else {
        PageCache.warm(file);
      }
    }
  }

  /// @return the seconds of the load, after the files were looked up
  private static double load(GantrySession session, List<Location> files) throws IOException {
    List<ExtentRequest> wanted = new ArrayList<>();
    for (Location file : files) {
      try (var open = session.openFile(file)) {
        // Uses the version that was looked up, as loads of weights do after they have read the
        // headers.
        Location version = file.at(open.identity());
        wanted.add(new ExtentRequest(new Extent(version, 0, open.size()), 64));
      }
    }
    long start = System.nanoTime();
    try (Loaded loaded =
        session.load(
            wanted,
            Device.HOST,
            TransferOptions.defaults().withCachePolicy(CachePolicy.BY_RESIDENCY))) {
      double seconds = (System.nanoTime() - start) / 1e9;
      long cached = loaded.report().files().stream().filter(FileReport::cached).count();
      if (cached > 0 && cached < files.size()) {
        throw new IOException(cached + " of " + files.size() + " files came out of the cache");
      }
      return seconds;
    }
  }

  private void serve(HttpExchange exchange) {
    try (exchange;
        FileChannel file =
            FileChannel.open(
                folder.resolve("files").resolve(exchange.getRequestURI().getPath().substring(1)))) {
      String[] range = exchange.getRequestHeaders().getFirst("Range").substring(6).split("-", 2);
      long from = Long.parseLong(range[0]);
      long length = Long.parseLong(range[1]) - from + 1;
      exchange.getResponseHeaders().set("ETag", "\"1\"");
      exchange
          .getResponseHeaders()
          .set("Content-Range", "bytes " + from + "-" + range[1] + "/" + file.size());
      exchange.sendResponseHeaders(206, length);
      sent.addAndGet(length);
      var body = Channels.newChannel(exchange.getResponseBody());
      ByteBuffer piece = ByteBuffer.allocate(64 << 10);
      for (long done = 0; done < length; ) {
        piece.clear().limit((int) Math.min(piece.capacity(), length - done));
        done += file.read(piece, from + done);
        body.write(piece.flip());
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
