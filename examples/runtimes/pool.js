const { pbkdf2 } = require('crypto');
for (let i = 0; i < 200; i++) pbkdf2('secret', 'salt', 20000, 64, 'sha512', () => {});
