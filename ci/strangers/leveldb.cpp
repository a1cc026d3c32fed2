// Four writers of one database: each waits in `DBImpl::Write` until the first of the queue has written its batch.
#include <leveldb/db.h>

#include <string>
#include <thread>
#include <vector>

int main(int, char **arguments) {
    leveldb::Options options;
    options.create_if_missing = true;
    leveldb::DB *database;
    if (!leveldb::DB::Open(options, arguments[1], &database).ok()) return 1;
    std::vector<std::thread> writers;
    for (int writer = 0; writer < 4; writer++)
        writers.emplace_back([=] {
            leveldb::WriteOptions how;
            how.sync = true;
            for (int i = 0; i < 400; i++)
                database->Put(how, std::to_string(writer) + ":" + std::to_string(i), std::string(2000, 'x'));
        });
    for (auto &writer : writers) writer.join();
    delete database;
}
